/* Gaussian noise in double precision, added on a grid: part of the library of `kernels.c`.
 * `grid_gaussian.py` documents it; the tests hold it against long doubles.
 *
 * Nothing here allocates, blocks or keeps state, so that any thread may call any function.
 */

#include <math.h>

#include "../../runtime/numbers.h"

#define CHUNK 1024           /* pairs per pass */
#define SMALL (1 << 22)      /* words below it, from the least, stand for numbers below 2^-10 */
#define WHOLE 6755399441055744.0 /* 1.5 * 2^52: added and subtracted, it rounds to whole numbers */

static INLINE double as_double(int64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static INLINE int64_t bits_of(double number) {
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static INLINE int is_small(int32_t word) { return word < INT32_MIN + SMALL; }

static INLINE double nearest(double x) { return (x + WHOLE) - WHOLE; }

/* ln(u) for a normal double in (0, 1]. Source: fdlibm, e_log.c; error below one last place. */
static INLINE double log_of(double u) {
    int64_t bits = bits_of(u);
    double k = as_double((int64_t)((uint64_t)bits >> 52) | 0x4330000000000000) - 4503599627371519.0;
    double mantissa = as_double((bits & 0x000fffffffffffff) | 0x3ff0000000000000); /* [1, 2) */
    int64_t is_big = -(int64_t)(mantissa > 1.4142135623730951);
    mantissa *= as_double((is_big & 0x3fe0000000000000) | (~is_big & 0x3ff0000000000000));
    k += as_double(is_big & 0x3ff0000000000000);
    double f = mantissa - 1.0, s = f / (2.0 + f), z = s * s;
    double p = 1.479819860511658591e-01;
    p = p * z + 1.531383769920937332e-01;
    p = p * z + 1.818357216161805012e-01;
    p = p * z + 2.222219843214978396e-01;
    p = p * z + 2.857142874366239149e-01;
    p = p * z + 3.999999999940941908e-01;
    p = p * z + 6.666666666666735130e-01;
    double half = 0.5 * f * f;
    return k * 6.93147180369123816490e-01
           - ((half - (s * (half + p * z) + k * 1.90821492927058770002e-10)) - f);
}

/* sin and cos of pi * turn / 2^63, the turn in two words. Quarter turns are subtracted as integers.
 * Source: fdlibm, k_sin.c and k_cos.c; error of about one last place. */
static INLINE void sin_cos_of(int32_t high, int32_t low, double *sine, double *cosine) {
    int32_t quarter = (int32_t)((uint32_t)high + 0x20000000u) >> 30;
    int32_t rest = (int32_t)((uint32_t)high - ((uint32_t)quarter << 30));
    double r = ((double)rest + ((double)low + 2147483648.5) * 0x1p-32)
               * (1.57079632679489661923 * 0x1p-30);
    double z = r * r;
    double s = 1.58969099521155010221e-10, c = -1.13596475577881948265e-11;
    s = s * z - 2.50507602534068634195e-08;
    s = s * z + 2.75573137070700676789e-06;
    s = s * z - 1.98412698298579493134e-04;
    s = s * z + 8.33333333332248946124e-03;
    s = s * z - 1.66666666666666324348e-01;
    s = r + r * z * s;
    c = c * z + 2.08757232129817482790e-09;
    c = c * z - 2.75573143513906633035e-07;
    c = c * z + 2.48015872894767294178e-05;
    c = c * z - 1.38888888888741095749e-03;
    c = c * z + 4.16666666666666019037e-02;
    c = 1.0 - (0.5 * z - z * z * c);
    int64_t turned = -(int64_t)(quarter & 1), a = bits_of(s), b = bits_of(c);
    int64_t first = (a & ~turned) | (b & turned), second = (b & ~turned) | (a & turned);
    *sine = as_double(first ^ (int64_t)((uint64_t)(int64_t)(quarter & 2) << 62));
    *cosine = as_double(second ^ (int64_t)((uint64_t)(int64_t)((quarter + 1) & 2) << 62));
}

/* Count the words whose uniform number is below 2^-10. */
FOR_EACH_PROCESSOR
int64_t count_small_words(const int32_t *words, int64_t count) {
    int64_t found = 0;
    for (int64_t start = 0; start < count; start += CHUNK) {
        int n = (int)(count - start < CHUNK ? count - start : CHUNK), here = 0;
        for (int i = 0; i < n; i++) here += is_small(words[start + i]);
        found += here;
    }
    return found;
}

/* Compute the radii of n <= CHUNK pairs, times stddev; return the unused bits for small numbers. */
static INLINE const uint64_t *radii_of(double *radius, int n, double stddev, const int32_t *high,
                                       const int32_t *low, const uint64_t *more) {
    int here = 0;
    for (int i = 0; i < n; i++)
        radius[i] = ((double)high[i] * 0x1p-32 + 0.5) + ((double)low[i] + 2147483648.5) * 0x1p-64;
    for (int i = 0; i < n; i++) here += is_small(high[i]);
    for (int i = 0; here && i < n; i++) {
        if (!is_small(high[i])) continue;
        uint64_t word = ((uint64_t)((uint32_t)high[i] ^ 0x80000000u) << 32)
                        | ((uint32_t)low[i] ^ 0x80000000u);
        radius[i] = ((double)word + ((double)*more++ + 0.5) * 0x1p-64) * 0x1p-64;
        here--;
    }
    for (int i = 0; i < n; i++) radius[i] = stddev * sqrt(fabs(2.0 * log_of(radius[i])));
    return more;
}

/* target <- the multiple of grid that is nearest to factor * source + noise; see `grid_gaussian.py`.
   What the source is above a multiple of the grid is added to the noise alone, so that the sum is as
   exact as the noise, however large the source. */
#define ADD_PAIRS_ON_GRID(NAME, SOURCE)                                                            \
    FOR_EACH_PROCESSOR                                                                             \
    void NAME(float *target, const SOURCE *source, int64_t size, double factor, double stddev,     \
              double grid, const int32_t *words, int64_t stride, const uint64_t *more) {           \
        int64_t half = size / 2, pairs = half + size % 2;                                          \
        double radius[CHUNK], sines[CHUNK], cosines[CHUNK], scale = 1.0 / grid;                    \
        for (int64_t start = 0; start < pairs; start += CHUNK, words += CHUNK) {                   \
            int n = (int)(pairs - start < CHUNK ? pairs - start : CHUNK);                          \
            more = radii_of(radius, n, stddev * scale, words, words + stride, more);               \
            for (int i = 0; i < n; i++)                                                            \
                sin_cos_of(words[2 * stride + i], words[3 * stride + i], &sines[i], &cosines[i]);  \
            for (int side = 0; side < 2; side++) {                                                 \
                const double *wave = side ? cosines : sines;                                       \
                int64_t first = start + (side ? pairs : 0), end = side ? size : pairs;             \
                int count = (int)(end - first < n ? end - first : n);                              \
                const SOURCE *from = source + first;                                               \
                float *to = target + first;                                                        \
                _Pragma("omp simd") for (int i = 0; i < count; i++) {                              \
                    double given = factor * (double)from[i] * scale, whole = nearest(given);       \
                    double rest = given - whole;                                                   \
                    to[i] = (float)((whole + nearest(rest + radius[i] * wave[i])) * grid);         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

ADD_PAIRS_ON_GRID(add_pairs_on_grid, float)
ADD_PAIRS_ON_GRID(add_pairs_of_doubles_on_grid, double)
