/* Shared by all compiled loops, in C and C++: target processors, the bits of floats, and exp. */

#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif
#define INLINE inline __attribute__((always_inline))

static INLINE float as_float(int32_t bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static INLINE int32_t as_bits(float number) {
    int32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* exp(x) for |x| <= 87. Source: Cephes, expf; error at most 2e-7 of the result. */
static INLINE float exp_of(float x) {
    float shifted = x * 1.44269504f + 12582912.0f; /* the nearest whole number is in its low bits */
    float n = shifted - 12582912.0f, r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * as_float((as_bits(shifted) - 0x4b400000 + 127) * 8388608);
}
