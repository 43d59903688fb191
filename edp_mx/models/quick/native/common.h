/* What all operators share: the processors that they are compiled for, types, and exp. */

#pragma once

#include <mxnet/lib_api.h>

#include <cmath>
#include <cstring>

using namespace mxnet::ext;

namespace {

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif
#define INLINE inline __attribute__((always_inline))

using Attributes = std::unordered_map<std::string, std::string>;
using Tensors = std::vector<MXTensor>;
using Shapes = std::vector<std::vector<unsigned int>>;

INLINE float as_float(int32_t bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

INLINE int32_t as_bits(float number) {
    int32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* exp(x) for x <= 0; 0 below -87, by masks: with a condition compilers leave the loop scalar.
 * Source: Cephes, expf; error at most 2e-7 of the result. */
INLINE float exp_of(float x) {
    int32_t valid = -(int32_t)(x > -87.0f);
    float low = as_float(as_bits(x) & valid);
    int32_t power = (int32_t)(low * 1.44269504f - 0.5f); /* towards zero: to the nearest */
    float n = (float)power, r = low - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return as_float(as_bits(p * as_float((power + 127) * 8388608)) & valid);
}

} // namespace
