/* GELU by GPT-2's approximation, x s(u) with s the logistic function and u = W x (1 + C x^2). */

#pragma once

#include "common.h"

namespace {

const float W = 1.5957691216f, C = 0.044715f; /* W = 2 sqrt(2 / pi) */

/* Without heads the value; with them the gradient, s + x s (1 - s) du/dx for each head. */
FOR_EACH_PROCESSOR
void gelu_of(const float *__restrict x, const float *__restrict heads, int64_t size,
             float *__restrict out) {
    for (int64_t i = 0; i < size; i++) {
        float square = x[i] * x[i], u = W * x[i] * (1.0f + C * square);
        float e = exp_or_zero(-fabsf(u));
        float s = (u < 0.0f ? e : 1.0f) / (1.0f + e);
        float slope = s + x[i] * s * (1.0f - s) * W * (1.0f + 3.0f * C * square);
        out[i] = heads ? heads[i] * slope : x[i] * s;
    }
}

MXReturnValue by_pieces(const float *x, const float *heads, int64_t size, float *out) {
#pragma omp parallel for
    for (int64_t i = 0; i < size; i += PIECE)
        gelu_of(x + i, heads ? heads + i : nullptr, size - i < PIECE ? size - i : PIECE, out + i);
    return MX_SUCCESS;
}

MXReturnValue gelu(const Attributes &, Tensors *inputs, Tensors *outputs, const OpResource &) {
    auto &x = (*inputs)[0];
    return by_pieces(x.data<float>(), nullptr, x.size(), (*outputs)[0].data<float>());
}

MXReturnValue gelu_backward(const Attributes &, Tensors *inputs, Tensors *outputs,
                            const OpResource &) {
    auto &x = (*inputs)[1];
    return by_pieces(x.data<float>(), (*inputs)[0].data<float>(), x.size(),
                     (*outputs)[0].data<float>());
}

} // namespace
