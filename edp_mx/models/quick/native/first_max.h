/* The maximum along an axis, and where it first occurs. */

#pragma once

#include "common.h"

namespace {

/* The maximum of (length, inner) along the length, and where it first occurs. NaN counts as larger
 * than every number. */
FOR_EACH_PROCESSOR
void largest(const float *__restrict x, int64_t length, int64_t inner, float *__restrict values,
             float *__restrict places) {
    for (int64_t j = 0; j < inner; j++) {
        values[j] = x[j];
        places[j] = 0.0f;
    }
    for (int64_t k = 1; k < length; k++) {
        x += inner;
#pragma omp simd
        for (int64_t j = 0; j < inner; j++) {
            bool is_larger = !(x[j] <= values[j]) & (values[j] == values[j]);
            values[j] = is_larger ? x[j] : values[j];
            places[j] = is_larger ? (float)k : places[j];
        }
    }
}

/* Sizes before, along and after the axis. */
struct Axis {
    int64_t outer = 1, length, inner = 1;

    Axis(const Attributes &attributes, const std::vector<int64_t> &shape) {
        size_t axis = std::stoul(attributes.at("axis"));
        length = shape[axis];
        for (size_t i = 0; i < axis; i++) outer *= shape[i];
        for (size_t i = axis + 1; i < shape.size(); i++) inner *= shape[i];
    }
};

MXReturnValue first_max(const Attributes &attributes, Tensors *inputs, Tensors *outputs,
                        const OpResource &) {
    Axis axis(attributes, (*inputs)[0].shape);
    const float *x = (*inputs)[0].data<float>();
    float *values = (*outputs)[0].data<float>(), *places = (*outputs)[1].data<float>();
#pragma omp parallel for
    for (int64_t i = 0; i < axis.outer; i++)
        largest(x + i * axis.length * axis.inner, axis.length, axis.inner,
                values + i * axis.inner, places + i * axis.inner);
    return MX_SUCCESS;
}

MXReturnValue first_max_backward(const Attributes &attributes, Tensors *inputs, Tensors *outputs,
                                 const OpResource &) {
    Axis axis(attributes, (*inputs)[2].shape);
    const float *heads = (*inputs)[0].data<float>(), *places = (*inputs)[4].data<float>();
    float *out = (*outputs)[0].data<float>();
    memset(out, 0, (*outputs)[0].size() * sizeof(float));
#pragma omp parallel for
    for (int64_t i = 0; i < axis.outer; i++)
        for (int64_t j = 0; j < axis.inner; j++) {
            int64_t k = (int64_t)places[i * axis.inner + j];
            out[(i * axis.length + k) * axis.inner + j] = heads[i * axis.inner + j];
        }
    return MX_SUCCESS;
}

} // namespace
