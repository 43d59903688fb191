/* Loops for which NumPy would pass over memory many times, with shapes as NumPy has them. The tests
 * hold them against slow forms in float64.
 *
 * Nothing here allocates, blocks or keeps state, so that any thread may call any function.
 */

#define VERSION 8 /* increase it whenever arguments change, in `kernels.py` too */

#include <math.h>
#include <stdint.h>

#include "numbers.h"

int64_t version(void) { return VERSION; }

/* ---- noise: Box-Muller ---------------------------------------------------------------------- */

#define SMALL (1.0f / 1024) /* uniform numbers below it have more bits, see `count_small` */
#define CHUNK 2048          /* pairs per pass */
#define SEARCHED 64         /* pairs per search for small numbers */

/* 32 random bits as a number in [0, 1]. */
static INLINE float uniform_of(int32_t word) { return (float)word * 0x1p-32f + 0.5f; }

/* ln(u) for a normal float in (0, 1]. Source: Cephes, logf; error at most 1e-7 of the result. */
static INLINE float log_of(float u) {
    int32_t bits = as_bits(u);
    int32_t exponent = (bits >> 23) - 127;
    float mantissa = as_float((bits & 0x007fffff) | 0x3f800000); /* [1, 2) */
    int32_t is_big = mantissa > 1.41421356f;
    mantissa = is_big ? 0.5f * mantissa : mantissa;
    float e = (float)(exponent + is_big);
    float f = mantissa - 1.0f, z = f * f;
    float p = 7.0376836292e-2f;
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    float y = f * z * p - 2.12194440e-4f * e - 0.5f * z;
    return f + y + 0.693359375f * e;
}

/* sin and cos of π · turn / 2³¹. Quarter turns are subtracted as integers, without error.
 * Source: Cephes, sinf and cosf on [-π/4, π/4]. */
static INLINE void sin_cos_of(int32_t turn, float *sine, float *cosine) {
    int32_t quarter = (int32_t)((uint32_t)turn + 0x20000000u) >> 30;
    int32_t rest = (int32_t)((uint32_t)turn - ((uint32_t)quarter << 30));
    float r = (float)rest * (1.57079632679489662f * 0x1p-30f), z = r * r;
    float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
    float c = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z
              - 0.5f * z + 1.0f;
    float a = (quarter & 1) ? c : s, b = (quarter & 1) ? s : c;
    *sine = as_float(as_bits(a) ^ (int32_t)((uint32_t)(quarter & 2) << 30));
    *cosine = as_float(as_bits(b) ^ (int32_t)((uint32_t)((quarter + 1) & 2) << 30));
}

/* Count the words, (count,), whose uniform number is below SMALL. */
FOR_EACH_PROCESSOR
int64_t count_small(const int32_t *words, int64_t count) {
    int64_t found = 0;
    for (int64_t start = 0; start < count; start += CHUNK) {
        int n = (int)(count - start < CHUNK ? count - start : CHUNK), here = 0;
        for (int i = 0; i < n; i++) here += uniform_of(words[start + i]) < SMALL;
        found += here;
    }
    return found;
}

/* Compute the radii of n <= CHUNK pairs, times stddev; return the unused bits for small numbers.
 * Meanwhile both parts of the target come from memory, which are needed last. */
static INLINE const uint64_t *radii_of(float *radius, int n, float stddev, const int32_t *words,
                                       const uint64_t *more, const float *first_part,
                                       const float *second_part) {
    for (int i = 0; i < n; i++) radius[i] = uniform_of(words[i]);
    for (int first = 0; first < n; first += SEARCHED) {
        int end = first + SEARCHED < n ? first + SEARCHED : n, here = 0;
        for (int i = first; i < end; i += 16) {
            __builtin_prefetch(first_part + i, 1);
            __builtin_prefetch(second_part + i, 1);
        }
        for (int i = first; i < end; i++) here += radius[i] < SMALL;
        for (int i = first; here && i < end; i++) {
            if (!(radius[i] < SMALL)) continue;
            double fraction = ((double)*more++ + 0.5) * 0x1p-64; /* (0, 1] */
            radius[i] = (float)(((double)words[i] + 0x1p31 + fraction) * 0x1p-32);
        }
    }
    for (int i = 0; i < n; i++) {
        float twice = -2.0f * log_of(radius[i]);
        radius[i] = stddev * sqrtf(twice > 0.0f ? twice : 0.0f);
    }
    return more;
}

/* target <- factor * source + stddev * (r sin, r cos), with u and the turns as `BoxMuller` has them.
 * SOURCE is the type of the source, in which the sum is made before it is rounded once; the source
 * may be the target. The first half of the target gets the first numbers of the pairs, the rest the
 * second ones; of an odd size the last place gets the first number of the last pair. `words` are 32
 * random bits for u, `turns` for the angle, and `more` 64 for each u that `count_small` counts.
 * Shapes: target, source (n,); words, turns (n / 2 rounded up,). */
#define SCALE_AND_ADD_PAIRS(NAME, SOURCE)                                                          \
    FOR_EACH_PROCESSOR                                                                             \
    void NAME(float *target, const SOURCE *source, int64_t size, SOURCE factor, float stddev,      \
              const int32_t *words, const int32_t *turns, const uint64_t *more) {                  \
        int64_t half = size / 2, pairs = half + size % 2;                                          \
        float radius[CHUNK], sines[CHUNK], cosines[CHUNK];                                         \
        for (int64_t start = 0; start < pairs; start += CHUNK, words += CHUNK, turns += CHUNK) {   \
            int n = (int)(pairs - start < CHUNK ? pairs - start : CHUNK);                          \
            int whole = (int)(half - start < n ? half - start : n); /* pairs with both numbers */  \
            const SOURCE *from = source + start;                                                   \
            float *to = target + start;                                                            \
            more = radii_of(radius, n, stddev, words, more, to, to + half);                        \
            for (int i = 0; i < n; i++) sin_cos_of(turns[i], &sines[i], &cosines[i]);              \
            _Pragma("omp simd") for (int i = 0; i < whole; i++) to[i] =                            \
                (float)(factor * from[i] + radius[i] * sines[i]);                                  \
            _Pragma("omp simd") for (int i = 0; i < whole; i++) to[half + i] =                     \
                (float)(factor * from[half + i] + radius[i] * cosines[i]);                         \
            if (whole < n)                                                                         \
                target[size - 1] =                                                                 \
                    (float)(factor * source[size - 1] + radius[whole] * sines[whole]);             \
        }                                                                                          \
    }

SCALE_AND_ADD_PAIRS(scale_and_add_pairs, float)
SCALE_AND_ADD_PAIRS(scale_and_add_pairs_of_doubles, double)

/* total <- total + factor * x */
FOR_EACH_PROCESSOR
void add_to_doubles(double *total, const float *x, int64_t size, double factor) {
#pragma omp simd
    for (int64_t i = 0; i < size; i++) total[i] += factor * x[i];
}

/* ---- norm ----------------------------------------------------------------------------------- */

#define SUMMED 512 /* squares added up in float32 before float64: 128 in each of at least 4 lanes */

FOR_EACH_PROCESSOR
double sum_of_squares(const float *x, int64_t size) {
    double sum = 0;
    for (int64_t start = 0; start < size; start += SUMMED) {
        int n = (int)(size - start < SUMMED ? size - start : SUMMED);
        float here = 0;
#pragma omp simd reduction(+ : here)
        for (int i = 0; i < n; i++) here += x[start + i] * x[start + i];
        sum += here;
    }
    return sum;
}

/* ---- Gram matrices -------------------------------------------------------------------------- */

#define LANES 8 /* twelve sums of so many stay in the registers of AVX2 */
#define ROWS 4
#define COLUMNS 3
typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));

/* The inner products of ROWS vectors with COLUMNS others, all of length d. */
static INLINE void products_of(const float *const *rows, const float *const *columns, int64_t d,
                               float *out) {
    lanes sums[ROWS][COLUMNS] = {0};
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                sums[i][j] += *(const lanes *)(rows[i] + k) * *(const lanes *)(columns[j] + k);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            float sum = 0;
            for (int lane = 0; lane < LANES; lane++) sum += sums[i][j][lane];
            for (int64_t rest = k; rest < d; rest++) sum += rows[i][rest] * columns[j][rest];
            out[i * COLUMNS + j] = sum;
        }
}

FOR_EACH_PROCESSOR
void gram(const float *values, int64_t n, int64_t t, int64_t d, int64_t example, int64_t row,
          float *out) {
    for (int64_t e = 0; e < n; e++, values += example, out += t * t)
        for (int64_t i = 0; i < t; i += ROWS)
            for (int64_t j = 0; j < i + ROWS && j < t; j += COLUMNS) {
                const float *rows[ROWS], *columns[COLUMNS];
                float found[ROWS * COLUMNS];
                for (int x = 0; x < ROWS; x++) rows[x] = values + (i + x < t ? i + x : i) * row;
                for (int y = 0; y < COLUMNS; y++) columns[y] = values + (j + y < t ? j + y : j) * row;
                products_of(rows, columns, d, found);
                for (int x = 0; x < ROWS && i + x < t; x++)
                    for (int y = 0; y < COLUMNS && j + y < t; y++)
                        out[(i + x) * t + j + y] = out[(j + y) * t + i + x] = found[x * COLUMNS + y];
            }
}

/* ---- an LSTM's cell ------------------------------------------------------------------------- */

/* By masks: compilers do not vectorise a loop with a condition. */
static INLINE float choose(int32_t condition, float yes, float no) {
    int32_t mask = -(condition != 0);
    return as_float((as_bits(yes) & mask) | (as_bits(no) & ~mask));
}

/* Clamp to [-87, 87]; NaN stays NaN. */
static INLINE float within(float x) {
    return choose(x > 87.0f, 87.0f, choose(x < -87.0f, -87.0f, x));
}

static INLINE float sigmoid_of(float x) {
    return choose(x != x, x, 1.0f / (1.0f + exp_of(-within(x))));
}

/* Source: Cephes, tanhf; error at most 2e-7 of the result. */
static INLINE float tanh_of(float x) {
    float z = x * x, p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    float large = 1.0f - 2.0f / (exp_of(within(2.0f * x)) + 1.0f);
    float small = p * z * x + x;
    return choose(x != x, x, choose(z < 0.390625f, small, large));
}

/* One step of n examples without its matrix products. `gates`, (n, 4H), come as what the inputs give
 * (input, forget, cell, output gate), and are left as the gates after their activations. Read:
 * `recurrent`, what the states before give, (n, 4H), bias (4H,), and the cells `before`, (n, H).
 * Filled: cells, their tanh `squashed`, and states, whose rows lie `stride` apart, (n, H) each. */
FOR_EACH_PROCESSOR
void lstm_cell(float *restrict gates, const float *restrict recurrent, const float *restrict bias,
               const float *restrict before, int64_t n, int64_t size, float *restrict cells,
               float *restrict squashed, float *restrict states, int64_t stride) {
    for (int64_t i = 0; i < n; i++) {
        if (recurrent)
            for (int64_t j = 0; j < 4 * size; j++) gates[j] += recurrent[j];
#pragma omp simd
        for (int64_t j = 0; j < size; j++) {
            float enter = sigmoid_of(gates[j] + bias[j]);
            float forget = sigmoid_of(gates[size + j] + bias[size + j]);
            float new = tanh_of(gates[2 * size + j] + bias[2 * size + j]);
            gates[j] = enter;
            gates[size + j] = forget;
            gates[2 * size + j] = new;
            cells[j] = enter * new;
        }
        if (before) {
#pragma omp simd
            for (int64_t j = 0; j < size; j++) cells[j] += gates[size + j] * before[j];
            before += size;
        }
#pragma omp simd
        for (int64_t j = 0; j < size; j++) {
            float leave = sigmoid_of(gates[3 * size + j] + bias[3 * size + j]);
            float tanh = tanh_of(cells[j]);
            gates[3 * size + j] = leave;
            squashed[j] = tanh;
            states[j] = leave * tanh;
        }
        if (recurrent) recurrent += 4 * size;
        gates += 4 * size;
        cells += size;
        squashed += size;
        states += stride;
    }
}

/* The same step backwards. Read: gates and squashed as above, `heads`, the gradients of the states,
 * (n, H), whose rows lie `stride` apart, and `later`, (m, H), what the following step adds to those
 * of the first m <= n. `cells`, the gradients of the cells, are left as those of the cells before.
 * Filled: `out`, the gradients of the gates before their activations, (n, 4H). */
FOR_EACH_PROCESSOR
void lstm_cell_backward(const float *restrict gates, const float *restrict before,
                        const float *restrict squashed, const float *restrict heads,
                        int64_t stride, const float *restrict later, int64_t later_n, int64_t n,
                        int64_t size, float *restrict cells, float *restrict out) {
    const float *enter = gates, *forget = gates + size;
    const float *new = gates + 2 * size, *leave = gates + 3 * size;
    for (int64_t i = 0; i < n; i++) {
        int has_later = i < later_n, has_before = before != 0;
#pragma omp simd
        for (int64_t j = 0; j < size; j++) {
            float state = heads[j] + (has_later ? later[j] : 0.0f);
            float cell = cells[j] + state * leave[j] * (1.0f - squashed[j] * squashed[j]);
            out[j] = cell * new[j] * enter[j] * (1.0f - enter[j]);
            out[size + j] =
                has_before ? cell * before[j] * forget[j] * (1.0f - forget[j]) : 0.0f;
            out[2 * size + j] = cell * enter[j] * (1.0f - new[j] * new[j]);
            out[3 * size + j] = state * squashed[j] * leave[j] * (1.0f - leave[j]);
            cells[j] = has_before ? cell * forget[j] : cell;
        }
        enter += 4 * size;
        forget += 4 * size;
        new += 4 * size;
        leave += 4 * size;
        squashed += size;
        heads += stride;
        later += has_later ? size : 0;
        before += has_before ? size : 0;
        cells += size;
        out += 4 * size;
    }
}

/* ---- Adam ----------------------------------------------------------------------------------- */

FOR_EACH_PROCESSOR
void adam(float *restrict weight, const float *restrict gradient, float *restrict mean,
          float *restrict variance, int64_t size, float rate, float beta1, float beta2, float eps,
          float rescale, float decay) {
    for (int64_t i = 0; i < size; i++) {
        float g = rescale * gradient[i] + decay * weight[i];
        mean[i] = beta1 * mean[i] + (1.0f - beta1) * g;
        variance[i] = beta2 * variance[i] + (1.0f - beta2) * g * g;
        weight[i] -= rate * mean[i] / (sqrtf(variance[i]) + eps);
    }
}
