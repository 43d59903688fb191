/* LayerNorm, dropout, self-attention, GELU and a maximum as MXNet operators for CPUs. MXNet loads this
 * library (`library.py`) and calls it from its own threads, whose OpenMP team is also used here.
 *
 * MXNet tells a library's operators neither whether it trains (see `Mask`) nor whether a result is
 * to be added to the array, as it requests for arrays with many readers; `edp_mx/__init__.py`
 * prevents the latter.
 */

#include "lib_api.cc" /* MXNet's part of such a library, in its package */

#include "attention.h"
#include "dropout.h"
#include "first_max.h"
#include "gelu.h"
#include "layer_norm.h"

#define VERSION 3 /* increase it whenever arguments change, in `library.py` too */

extern "C" int edp_version() { return VERSION; }

namespace {

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

MXReturnValue gelu_shapes(const Attributes &, Shapes *inputs, Shapes *outputs) {
    (*outputs)[0] = (*inputs)[0];
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

REGISTER_OP(edp_gelu)
    .setForward(gelu, "cpu")
    .setBackward(gelu_backward, "cpu")
    .setParseAttrs(count<1, 1>)
    .setInferType(are_floats)
    .setInferShape(gelu_shapes);

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
