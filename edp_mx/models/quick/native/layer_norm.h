/* LayerNorm. */

#pragma once

#include "common.h"

namespace {

const int64_t ROWS = 64; /* rows per task; summed in float32, the tasks in float64 */

/* Mean of a row, and 1 / its standard deviation. */
INLINE void moments(const float *x, int64_t width, float eps, float *mean, float *scale) {
    float sum = 0, squares = 0, share = 1.0f / (float)width;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < width; j++) sum += x[j];
    float middle = sum * share;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < width; j++) squares += (x[j] - middle) * (x[j] - middle);
    *mean = middle;
    *scale = 1.0f / sqrtf(squares * share + eps);
}

FOR_EACH_PROCESSOR
void normalize(const float *__restrict x, const float *__restrict gamma,
               const float *__restrict beta, int64_t rows, int64_t width, float eps,
               float *__restrict out) {
    for (int64_t r = 0; r < rows; r++, x += width, out += width) {
        float mean, scale;
        moments(x, width, eps, &mean, &scale);
        for (int64_t j = 0; j < width; j++) out[j] = (x[j] - mean) * scale * gamma[j] + beta[j];
    }
}

/* The gradient of x: (h - mean(h) - x' mean(h x')) * scale, h = gamma g and x' the normalised x.
 * by_gamma and by_beta are added to. Source: Ba et al. 2016, the derivative of equation 3. */
FOR_EACH_PROCESSOR
void normalize_backward(const float *__restrict x, const float *__restrict gamma,
                        const float *__restrict heads, int64_t rows, int64_t width, float eps,
                        float *__restrict out, float *__restrict by_gamma,
                        float *__restrict by_beta) {
    float share = 1.0f / (float)width;
    for (int64_t r = 0; r < rows; r++, x += width, heads += width, out += width) {
        float mean, scale, wanted = 0, overlap = 0;
        moments(x, width, eps, &mean, &scale);
#pragma omp simd reduction(+ : wanted, overlap)
        for (int64_t j = 0; j < width; j++) {
            float normal = (x[j] - mean) * scale, head = heads[j] * gamma[j];
            by_gamma[j] += heads[j] * normal;
            by_beta[j] += heads[j];
            wanted += head;
            overlap += head * normal;
        }
        wanted *= share;
        overlap *= share;
        for (int64_t j = 0; j < width; j++) {
            float normal = (x[j] - mean) * scale;
            out[j] = scale * (heads[j] * gamma[j] - wanted - normal * overlap);
        }
    }
}

MXReturnValue layer_norm(const Attributes &attributes, Tensors *inputs, Tensors *outputs,
                         const OpResource &) {
    const float *x = (*inputs)[0].data<float>(), *gamma = (*inputs)[1].data<float>();
    const float *beta = (*inputs)[2].data<float>();
    float *out = (*outputs)[0].data<float>(), eps = std::stof(attributes.at("eps"));
    int64_t width = (*inputs)[0].shape.back(), rows = (*inputs)[0].size() / width;
#pragma omp parallel for
    for (int64_t first = 0; first < rows; first += ROWS)
        normalize(x + first * width, gamma, beta, rows - first < ROWS ? rows - first : ROWS, width,
                  eps, out + first * width);
    return MX_SUCCESS;
}

MXReturnValue layer_norm_backward(const Attributes &attributes, Tensors *inputs, Tensors *outputs,
                                  const OpResource &) {
    const float *heads = (*inputs)[0].data<float>(), *x = (*inputs)[1].data<float>();
    const float *gamma = (*inputs)[2].data<float>();
    float *out = (*outputs)[0].data<float>(), eps = std::stof(attributes.at("eps"));
    int64_t width = (*inputs)[1].shape.back(), rows = (*inputs)[1].size() / width;
    int64_t pieces = (rows + ROWS - 1) / ROWS;
    std::vector<float> sums(pieces * 2 * width);
#pragma omp parallel for
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t first = piece * ROWS;
        float *mine = sums.data() + piece * 2 * width;
        normalize_backward(x + first * width, gamma, heads + first * width,
                           rows - first < ROWS ? rows - first : ROWS, width, eps,
                           out + first * width, mine, mine + width);
    }
    for (int64_t j = 0; j < 2 * width; j++) { /* in the same order for any number of threads */
        double sum = 0;
        for (int64_t piece = 0; piece < pieces; piece++) sum += sums[piece * 2 * width + j];
        (*outputs)[1 + j / width].data<float>()[j % width] = (float)sum;
    }
    return MX_SUCCESS;
}

} // namespace
