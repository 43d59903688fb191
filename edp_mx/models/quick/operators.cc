/* LayerNorm, dropout, self-attention and a maximum as operators of MXNet, for processors. MXNet loads this
 * library (`library.py`) and calls it from its own threads, whose OpenMP team is also ours.
 *
 * MXNet does not tell an operator of a library whether it trains: see `Mask`. Nor whether a result
 * is to be added to what is there, which it asks for where an array has many readers: it is kept
 * from that in `edp_mx/__init__.py`.
 */

#include "lib_api.cc" /* MXNet's part of such a library, in its package */

#include <cmath>
#include <cstring>

#define VERSION 2 /* one more whenever an operator's arguments change; `library.py` has it too */

using namespace mxnet::ext;

extern "C" int edp_version() { return VERSION; }

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

/* ---- numbers -------------------------------------------------------------------------------- */

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

/* ---- masks of dropout ----------------------------------------------------------------------- */

const int DRAWS = 64; /* `dropout.py` has it too */

/* Which places are lost: those whose hash under two keys is below `lost`. Nothing but the draws is
 * kept for the backward pass. They are MXNet's own dropout of ones, by half: each 0 or 2, which
 * makes the bits of two keys, or outside training each 1, and nothing is lost. */
struct Mask {
    uint32_t key = 0, other = 1, lost = 0;
    float scale = 1.0f; /* of what is kept: 1 / (1 - rate) */

    Mask(const float *draws, float rate) {
        bool is_train = false;
        uint32_t keys[2] = {0, 0};
        for (int i = 0; i < DRAWS; i++) {
            is_train |= draws[i] != 1.0f;
            keys[i / 32] |= (uint32_t)(draws[i] > 1.0f) << i % 32;
        }
        if (!is_train) return;
        key = keys[0];
        other = keys[1];
        lost = (uint32_t)(rate * 4294967296.0);
        scale = 1.0f / (1.0f - rate);
    }

    /* 32 random bits of place `i`. Source: Wellons 2018, "lowbias32", with a second key. */
    INLINE uint32_t hash_of(uint32_t i) const {
        uint32_t h = i ^ key;
        h ^= h >> 16;
        h *= 0x7feb352du;
        h ^= h >> 15;
        h += other;
        h *= 0x846ca68bu;
        return h ^ h >> 16;
    }

    INLINE bool loses(uint32_t i) const { return hash_of(i) < lost; }
};

/* ---- small matrix products ------------------------------------------------------------------ */

const int64_t LANES = 16; /* floats that are in work at once */
typedef float Lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* The next multiple of LANES: rows are padded to it. */
INLINE int64_t padded(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

/* A matrix whose (row, column) lies at data[row * down + column * along]. */
struct Matrix {
    const float *data;
    int64_t down, along;
};

template <int ROWS, int COLUMNS>
INLINE void multiply_tile(Matrix a, const float *b, int64_t b_width, int64_t depth, float scale,
                          float *c, int64_t c_width) {
    Lanes sums[ROWS][COLUMNS] = {};
    for (int64_t i = 0; i < depth; i++) {
        Lanes from[COLUMNS];
#pragma GCC unroll 8
        for (int j = 0; j < COLUMNS; j++) from[j] = *(const Lanes *)(b + i * b_width + j * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) {
            float x = a.data[r * a.down + i * a.along];
#pragma GCC unroll 8
            for (int j = 0; j < COLUMNS; j++) sums[r][j] += x * from[j];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 8
        for (int j = 0; j < COLUMNS; j++)
            *(Lanes *)(c + r * c_width + j * LANES) = scale * sums[r][j];
}

template <int COLUMNS>
INLINE void multiply_columns(Matrix a, const float *b, int64_t b_width, int64_t rows,
                             int64_t depth, float scale, float *c) {
    int64_t row = 0;
    for (; row + 6 <= rows; row += 6, a.data += 6 * a.down, c += 6 * b_width)
        multiply_tile<6, COLUMNS>(a, b, b_width, depth, scale, c, b_width);
    for (; row + 2 <= rows; row += 2, a.data += 2 * a.down, c += 2 * b_width)
        multiply_tile<2, COLUMNS>(a, b, b_width, depth, scale, c, b_width);
    if (row < rows) multiply_tile<1, COLUMNS>(a, b, b_width, depth, scale, c, b_width);
}

/* c <- scale * a (rows, depth) b (depth, width); b's and c's rows are padded. */
INLINE void multiply(Matrix a, const float *b, int64_t rows, int64_t depth, int64_t width,
                     float scale, float *c) {
    int64_t wide = padded(width), column = 0;
    for (; column + 2 * LANES <= wide; column += 2 * LANES)
        multiply_columns<2>(a, b + column, wide, rows, depth, scale, c + column);
    if (column < wide) multiply_columns<1>(a, b + column, wide, rows, depth, scale, c + column);
}

INLINE Matrix transposed(Matrix a) { return {a.data, a.along, a.down}; }

/* Copies a row, lanes at a time; the last ones may overlap the ones before. */
INLINE void copy_row(const float *from, int64_t width, float *to) {
    if (width < LANES) {
        for (int64_t j = 0; j < width; j++) to[j] = from[j];
        return;
    }
    for (int64_t j = 0; j + LANES <= width; j += LANES) *(Lanes *)(to + j) = *(const Lanes *)(from + j);
    *(Lanes *)(to + width - LANES) = *(const Lanes *)(from + width - LANES);
}

/* to <- the matrix, its rows padded with zeros. */
INLINE void pad_rows(Matrix from, int64_t rows, int64_t width, float *to) {
    int64_t wide = padded(width);
    for (int64_t i = 0; i < rows; i++, to += wide) {
        *(Lanes *)(to + wide - LANES) = Lanes{};
        copy_row(from.data + i * from.down, width, to);
    }
}

/* The same with the matrix (width, rows) transposed. */
INLINE void pad_columns(Matrix from, int64_t rows, int64_t width, float *to) {
    int64_t wide = padded(width);
    for (int64_t j = 0; j < wide; j++)
        for (int64_t i = 0; i < rows; i++)
            to[i * wide + j] = j < width ? from.data[j * from.down + i] : 0.0f;
}

/* Padded rows into a matrix. */
INLINE void put_rows(const float *from, int64_t rows, int64_t width, float *to, int64_t down) {
    for (int64_t i = 0; i < rows; i++, from += padded(width)) copy_row(from, width, to + i * down);
}

/* ---- self-attention ------------------------------------------------------------------------- */

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

/* One example. shares <- the softmax over the valid pieces, in padded rows, with a minus where
 * dropout takes it. */
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
                row[j] = exp_of(row[j] - highest);
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

/* ---- dropout -------------------------------------------------------------------------------- */

FOR_EACH_PROCESSOR
void drop(const float *x, int64_t first, int64_t end, Mask mask, float *out) {
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        out[i] = mask.loses((uint32_t)i) ? 0.0f : x[i] * mask.scale;
}

const int64_t PIECE = 1 << 14; /* floats that a thread takes at once */

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

/* ---- LayerNorm ------------------------------------------------------------------------------ */

const int64_t ROWS = 64; /* that a thread takes at once; summed up in float32, then in float64 */

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
    for (int64_t j = 0; j < 2 * width; j++) { /* in the same order, whatever the threads */
        double sum = 0;
        for (int64_t piece = 0; piece < pieces; piece++) sum += sums[piece * 2 * width + j];
        (*outputs)[1 + j / width].data<float>()[j % width] = (float)sum;
    }
    return MX_SUCCESS;
}

/* ---- the first of the largest ---------------------------------------------------------------- */

/* Of (length, inner) the largest along the length, and where it comes first. What is no number is
 * larger than all. */
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

/* Sizes around the axis: before it, along it, behind it. */
struct Axis {
    int64_t outer = 1, length, inner = 1;

    Axis(const Attributes &attributes, const std::vector<int64_t> &shape) {
        size_t axis = std::stoul(attributes.at("axis"));
        length = shape[axis];
        for (size_t i = 0; i < shape.size(); i++) (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
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

/* ---- what MXNet asks about them ------------------------------------------------------------- */

template <int INPUTS, int OUTPUTS>
MXReturnValue count(const Attributes &, int *inputs, int *outputs) {
    *inputs = INPUTS;
    *outputs = OUTPUTS;
    return MX_SUCCESS;
}

MXReturnValue are_floats(const Attributes &, std::vector<int> *inputs, std::vector<int> *outputs) {
    for (auto &type : *inputs) type = kFloat32;
    for (auto &type : *outputs) type = kFloat32;
    return MX_SUCCESS;
}

MXReturnValue attention_shapes(const Attributes &attributes, Shapes *inputs, Shapes *outputs) {
    auto &projected = (*inputs)[0];
    if (projected.size() != 3) return MX_SUCCESS; /* not known yet */
    unsigned int heads = std::stoul(attributes.at("heads"));
    unsigned int width = projected[0], examples = projected[1], units = projected[2] / 3;
    if (units * 3 != projected[2] || units % heads) {
        MX_ERROR_MSG << "not three times as many units as heads have" << std::endl;
        return MX_FAIL;
    }
    (*inputs)[1] = {examples, width};
    (*inputs)[2] = {DRAWS};
    (*outputs)[0] = {width, examples, units};
    (*outputs)[1] = {examples * heads, width, (unsigned int)padded(width)};
    return MX_SUCCESS;
}

MXReturnValue dropout_shapes(const Attributes &, Shapes *inputs, Shapes *outputs) {
    (*inputs)[1] = {DRAWS};
    (*outputs)[0] = (*inputs)[0];
    return MX_SUCCESS;
}

MXReturnValue first_max_shapes(const Attributes &attributes, Shapes *inputs, Shapes *outputs) {
    size_t axis = std::stoul(attributes.at("axis"));
    auto shape = (*inputs)[0];
    if (shape.empty()) return MX_SUCCESS; /* not known yet */
    if (axis >= shape.size() || shape[axis] == 0) {
        MX_ERROR_MSG << "nothing along axis " << axis << std::endl;
        return MX_FAIL;
    }
    shape.erase(shape.begin() + axis);
    (*outputs)[0] = (*outputs)[1] = shape;
    return MX_SUCCESS;
}

MXReturnValue layer_norm_shapes(const Attributes &, Shapes *inputs, Shapes *outputs) {
    auto &data = (*inputs)[0];
    if (data.empty()) return MX_SUCCESS; /* not known yet */
    (*inputs)[1] = (*inputs)[2] = {data.back()};
    (*outputs)[0] = data;
    return MX_SUCCESS;
}

REGISTER_OP(edp_attention)
    .setForward(attention, "cpu")
    .setBackward(attention_backward, "cpu")
    .setParseAttrs(count<3, 2>)
    .setInferType(are_floats)
    .setInferShape(attention_shapes);

REGISTER_OP(edp_dropout)
    .setForward(dropout, "cpu")
    .setBackward(dropout_backward, "cpu")
    .setParseAttrs(count<2, 1>)
    .setInferType(are_floats)
    .setInferShape(dropout_shapes);

REGISTER_OP(edp_first_max)
    .setForward(first_max, "cpu")
    .setBackward(first_max_backward, "cpu")
    .setParseAttrs(count<1, 2>)
    .setInferType(are_floats)
    .setInferShape(first_max_shapes);

REGISTER_OP(edp_layer_norm)
    .setForward(layer_norm, "cpu")
    .setBackward(layer_norm_backward, "cpu")
    .setParseAttrs(count<3, 1>)
    .setInferType(are_floats)
    .setInferShape(layer_norm_shapes);

} // namespace

MXReturnValue initialize(int version) {
    if (version >= 10700 && version < 20000) return MX_SUCCESS;
    MX_ERROR_MSG << "edp_mx's operators are for MXNet 1.7 to 1.9" << std::endl;
    return MX_FAIL;
}
