/* Small matrix products. */

#pragma once

#include "common.h"

namespace {

const int64_t LANES = 16; /* floats per step */
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

/* Copies a row, lanes at a time; the last ones may overlap the ones before. */
INLINE void copy_row(const float *from, int64_t width, float *to) {
    if (width < LANES) {
        for (int64_t j = 0; j < width; j++) to[j] = from[j];
        return;
    }
    for (int64_t j = 0; j + LANES <= width; j += LANES)
        *(Lanes *)(to + j) = *(const Lanes *)(from + j);
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

} // namespace
