"""Hugging Face's names for the tensors of a GPT-2, and which of our parameters each one is."""

from __future__ import annotations

from typing import Dict, List, Mapping, Tuple

import numpy as np
from mxnet import gluon

from edp_mx.models.gpt2.decoder import GPT2

PIECES = "wte.weight"
_POSITIONS = "wpe.weight"
_TURNED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")

Parameters = Tuple[gluon.Parameter, ...]


def parameters_of(decoder: GPT2) -> Dict[str, Parameters]:
    """Return the parameters whose rows, one behind the other, each of their tensors holds."""
    found: Dict[str, Parameters] = {
        PIECES: (decoder.piece_embedding,),
        _POSITIONS: (decoder.position_weight,),
        "ln_f.weight": (decoder.norm.gamma,),
        "ln_f.bias": (decoder.norm.beta,),
    }
    for i, layer in enumerate(decoder.layers):
        attention = layer.attention
        own: Mapping[str, Parameters] = {
            "ln_1.weight": (layer.attention_norm.gamma,),
            "ln_1.bias": (layer.attention_norm.beta,),
            "attn.c_attn.weight": (
                attention.query_weight, attention.key_weight, attention.value_weight
            ),
            "attn.c_attn.bias": (attention.query_bias, attention.key_bias, attention.value_bias),
            "attn.c_proj.weight": (layer.proj.weight,),
            "attn.c_proj.bias": (layer.proj.bias,),
            "ln_2.weight": (layer.ffn_norm.gamma,),
            "ln_2.bias": (layer.ffn_norm.beta,),
            "mlp.c_fc.weight": (layer.ffn_1.weight,),
            "mlp.c_fc.bias": (layer.ffn_1.bias,),
            "mlp.c_proj.weight": (layer.ffn_2.weight,),
            "mlp.c_proj.bias": (layer.ffn_2.bias,),
        }  # fmt: skip
        found.update({f"h.{i}.{name}": parameters for name, parameters in own.items()})
    return found


def shapes_of(decoder: GPT2) -> Dict[str, Tuple[int, ...]]:
    """Return the shapes of their tensors; those of dense layers are turned: inputs × outputs."""
    shapes: Dict[str, Tuple[int, ...]] = {}
    for name, parameters in parameters_of(decoder).items():
        rows, *rest = parameters[0].shape
        whole = (len(parameters) * rows, *rest)
        shapes[name] = whole[::-1] if name.endswith(_TURNED) else whole
    return shapes


def rows_of(name: str, tensor: np.ndarray, parameters: Parameters) -> List[np.ndarray]:
    """Return the values of the parameters that a tensor holds."""
    whole = tensor.T if name.endswith(_TURNED) else tensor
    return np.split(whole, len(parameters))


def tensor_of(name: str, values: List[np.ndarray]) -> np.ndarray:
    """Return the tensor that holds some values, a copy; see `rows_of`."""
    whole = np.concatenate(values)
    return whole.T.copy() if name.endswith(_TURNED) else whole
