/* Dropout. */

#pragma once

#include "mask.h"

namespace {

FOR_EACH_PROCESSOR
void drop(const float *x, int64_t first, int64_t end, Mask mask, float *out) {
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        out[i] = mask.loses((uint32_t)i) ? 0.0f : x[i] * mask.scale;
}

void dropout_of(const MXTensor &x, const MXTensor &draws, const Attributes &attributes,
                MXTensor *out) {
    Mask mask(const_cast<MXTensor &>(draws).data<float>(), std::stof(attributes.at("rate")));
    const float *from = const_cast<MXTensor &>(x).data<float>();
    float *to = out->data<float>();
    int64_t size = x.size();
#pragma omp parallel for
    for (int64_t first = 0; first < size; first += PIECE)
        drop(from, first, first + PIECE < size ? first + PIECE : size, mask, to);
}

MXReturnValue dropout(const Attributes &attributes, Tensors *inputs, Tensors *outputs,
                      const OpResource &) {
    dropout_of((*inputs)[0], (*inputs)[1], attributes, &(*outputs)[0]);
    return MX_SUCCESS;
}

MXReturnValue dropout_backward(const Attributes &attributes, Tensors *inputs, Tensors *outputs,
                               const OpResource &) {
    dropout_of((*inputs)[0], (*inputs)[2], attributes, &(*outputs)[0]);
    memset((*outputs)[1].data<float>(), 0, (*outputs)[1].size() * sizeof(float));
    return MX_SUCCESS;
}

} // namespace
