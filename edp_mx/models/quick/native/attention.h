/* Self-attention. */

#pragma once

#include "mask.h"
#include "products.h"

namespace {

/* Sizes of an attention. Queries, keys and values lie one after the other, each (heads, size), in
 * `projected`, (width, examples, 3 * heads * size). */
struct Attention {
    int64_t examples, heads, width, size;

    int64_t units() const { return heads * size; }

    /* Where queries (0), keys (1) or values (2) of a head begin; their rows are `down` apart. */
    int64_t part(int64_t n, int64_t h, int which) const {
        return (n * 3 + which) * units() + h * size;
    }

    int64_t down() const { return examples * 3 * units(); }

    /* The same in the result, (width, examples, heads * size). */
    int64_t result(int64_t n, int64_t h) const { return n * units() + h * size; }

    int64_t result_down() const { return examples * units(); }

    int64_t scratch() const {
        return 2 * width * padded(size) + padded(width) * (2 * width + size);
    }
};

/* One example. shares <- the softmax over the valid pieces, in padded rows, negated where
 * dropout removes it. */
FOR_EACH_PROCESSOR
void attend(Attention sizes, const float *projected, const float *lengths, int64_t n, Mask mask,
            float *context, float *shares, float *scratch) {
    int64_t width = sizes.width, size = sizes.size, wide = padded(width), down = sizes.down();
    float *keys = scratch, *values = keys + size * wide, *weights = values + width * padded(size);
    float *result = weights + width * wide, root = 1.0f / sqrtf((float)size);
    for (int64_t h = 0; h < sizes.heads; h++) {
        Matrix query = {projected + sizes.part(n, h, 0), down, 1};
        pad_columns({projected + sizes.part(n, h, 1), down, 1}, size, width, keys);
        pad_rows({projected + sizes.part(n, h, 2), down, 1}, width, size, values);
        multiply(query, keys, width, size, width, root, weights);
        int64_t first = (n * sizes.heads + h) * width * wide;
        for (int64_t t = 0; t < width; t++) {
            float *row = weights + t * wide, *kept = shares + first + t * wide;
            float highest = -INFINITY, sum = 0;
            uint32_t place = (uint32_t)(first + t * wide);
            int32_t length = (int32_t)lengths[n * width + t];
#pragma omp simd
            for (int32_t j = 0; j < wide; j++) row[j] = j < length ? row[j] : -INFINITY;
#pragma omp simd reduction(max : highest)
            for (int32_t j = 0; j < wide; j++) highest = row[j] > highest ? row[j] : highest;
#pragma omp simd reduction(+ : sum)
            for (int32_t j = 0; j < wide; j++) {
                row[j] = exp_or_zero(row[j] - highest);
                sum += row[j];
            }
            float share = sum > 0.0f ? 1.0f / sum : 0.0f; /* 0: no piece is valid */
#pragma omp simd
            for (int32_t j = 0; j < wide; j++) {
                float value = row[j] * share;
                bool is_lost = mask.loses(place + (uint32_t)j);
                kept[j] = is_lost ? -value : value;
                row[j] = is_lost ? 0.0f : mask.scale * value;
            }
        }
        multiply({weights, wide, 1}, values, width, width, size, 1.0f, result);
        put_rows(result, width, size, context + sizes.result(n, h), sizes.result_down());
    }
}

/* One example: the gradient of `projected` from that of the context. */
FOR_EACH_PROCESSOR
void attend_backward(Attention sizes, const float *heads, const float *projected,
                     const float *shares, int64_t n, float scale, float *out, float *scratch) {
    int64_t width = sizes.width, size = sizes.size, wide = padded(width), deep = padded(size);
    int64_t down = sizes.down();
    float *padding = scratch, *result = padding + width * deep, *values = result + width * deep;
    float *by_scores = values + size * wide, *weights = by_scores + width * wide;
    float root = 1.0f / sqrtf((float)size);
    for (int64_t h = 0; h < sizes.heads; h++, shares += width * wide) {
        Matrix gradient = {heads + sizes.result(n, h), sizes.result_down(), 1};
        Matrix query = {projected + sizes.part(n, h, 0), down, 1};
        Matrix key = {projected + sizes.part(n, h, 1), down, 1};
        pad_columns({projected + sizes.part(n, h, 2), down, 1}, size, width, values);
        multiply(gradient, values, width, size, width, scale, by_scores);
        for (int64_t t = 0; t < width; t++) {
            const float *share = shares + t * wide;
            float *row = by_scores + t * wide, *weight = weights + t * wide, sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int32_t j = 0; j < wide; j++) {
                float kept = share[j] > 0.0f ? share[j] : 0.0f;
                weight[j] = scale * kept;
                sum += row[j] * kept;
            }
#pragma omp simd
            for (int32_t j = 0; j < wide; j++) {
                float gain = share[j] > 0.0f ? row[j] : 0.0f, chance = fabsf(share[j]);
                row[j] = chance * (gain - sum);
            }
        }
        pad_rows(gradient, width, size, padding);
        multiply({weights, 1, wide}, padding, width, width, size, 1.0f, result);
        put_rows(result, width, size, out + sizes.part(n, h, 2), down);
        pad_rows(key, width, size, padding);
        multiply({by_scores, wide, 1}, padding, width, width, size, root, result);
        put_rows(result, width, size, out + sizes.part(n, h, 0), down);
        pad_rows(query, width, size, padding);
        multiply({by_scores, 1, wide}, padding, width, width, size, root, result);
        put_rows(result, width, size, out + sizes.part(n, h, 1), down);
    }
}

Attention attention_of(const Attributes &attributes, const MXTensor &projected) {
    int64_t heads = std::stoll(attributes.at("heads"));
    return {projected.shape[1], heads, projected.shape[0], projected.shape[2] / 3 / heads};
}

MXReturnValue attention(const Attributes &attributes, Tensors *inputs, Tensors *outputs,
                        const OpResource &) {
    Attention sizes = attention_of(attributes, (*inputs)[0]);
    const float *projected = (*inputs)[0].data<float>(), *lengths = (*inputs)[1].data<float>();
    Mask mask((*inputs)[2].data<float>(), std::stof(attributes.at("rate")));
    float *context = (*outputs)[0].data<float>(), *shares = (*outputs)[1].data<float>();
#pragma omp parallel
    {
        std::vector<float> scratch(sizes.scratch());
#pragma omp for
        for (int64_t n = 0; n < sizes.examples; n++)
            attend(sizes, projected, lengths, n, mask, context, shares, scratch.data());
    }
    return MX_SUCCESS;
}

MXReturnValue attention_backward(const Attributes &attributes, Tensors *inputs, Tensors *outputs,
                                 const OpResource &) {
    Attention sizes = attention_of(attributes, (*inputs)[2]);
    const float *heads = (*inputs)[0].data<float>(), *projected = (*inputs)[2].data<float>();
    Mask mask((*inputs)[4].data<float>(), std::stof(attributes.at("rate")));
    const float *shares = (*inputs)[6].data<float>();
    int64_t block = sizes.heads * sizes.width * padded(sizes.width);
    float *out = (*outputs)[0].data<float>();
#pragma omp parallel
    {
        std::vector<float> scratch(sizes.scratch());
#pragma omp for
        for (int64_t n = 0; n < sizes.examples; n++)
            attend_backward(sizes, heads, projected, shares + n * block, n, mask.scale, out,
                            scratch.data());
    }
    for (int i = 1; i < 3; i++)
        memset((*outputs)[i].data<float>(), 0, (*outputs)[i].size() * sizeof(float));
    return MX_SUCCESS;
}

} // namespace
