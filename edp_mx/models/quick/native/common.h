/* Shared by all operators: types, and exp. */

#pragma once

#include <mxnet/lib_api.h>

#include <cmath>
#include <cstring>

#include "../../../runtime/numbers.h"

using namespace mxnet::ext;

namespace {

const int64_t PIECE = 1 << 14; /* floats per task */

using Attributes = std::unordered_map<std::string, std::string>;
using Tensors = std::vector<MXTensor>;
using Shapes = std::vector<std::vector<unsigned int>>;

/* exp(x) for x <= 0; 0 below -87, by masks: compilers do not vectorise a condition. */
INLINE float exp_or_zero(float x) {
    int32_t valid = -(int32_t)(x > -87.0f);
    return as_float(as_bits(exp_of(as_float(as_bits(x) & valid))) & valid);
}

} // namespace
