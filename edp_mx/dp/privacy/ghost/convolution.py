"""Per-example gradients of a 1-D convolution that reads R rows of each example (its tokens).

For one example, the gradient of weight[f, d, j] is Σ_r Σ_w g[r, f, w] x[r, d, s w + j δ − pad]
with stride s and dilation δ, and that of bias[f] is Σ_r Σ_w g[r, f, w]. For a character CNN these
are a few thousand floats per example, which all fit in memory: the rest is left to `explicit`.

Source: Chellapilla et al. 2006 (convolution as a matrix product); Rochette et al. 2019 for
per-example gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_mx.dp.privacy.ghost import explicit


@dataclass(frozen=True)
class Window:
    """Settings of MXNet's Convolution in layout NCW, with one group."""

    width: int
    stride: int = 1
    pad: int = 0
    dilate: int = 1

    @property
    def reach(self) -> int:
        return (self.width - 1) * self.dilate


def weight_gradients(inputs: np.ndarray, gradients: np.ndarray, window: Window) -> np.ndarray:
    """Return each example's gradient of the weight.

    Shapes: inputs (N, R, D, W) · gradients (N, R, F, W′) → (N, F, D, k).
    """
    shape = (len(inputs), gradients.shape[2], inputs.shape[2], window.width)
    result = np.empty(shape, np.float32)
    rows, channels, length = inputs.shape[1:]
    copies = rows * (channels + shape[1]) * (length + 2 * window.pad)
    for group in explicit.groups(len(inputs), copies + result[0].size):
        result[group] = _weight_gradients(inputs[group], gradients[group], window)
    return result


def bias_gradients(gradients: np.ndarray) -> np.ndarray:
    """Return each example's gradient of the bias. Shapes: (N, R, F, W′) → (N, F)."""
    return gradients.sum(axis=3).sum(axis=1)


@np.errstate(over="ignore", invalid="ignore")
def _weight_gradients(inputs: np.ndarray, gradients: np.ndarray, window: Window) -> np.ndarray:
    """As `weight_gradients`, all examples at once.

    The rows of an example are laid end to end, padded, and an output's gradient where its window
    begins. Tap j is then one matrix product with the inputs shifted by j·δ.
    """
    length = inputs.shape[3] + 2 * window.pad
    x = _end_to_end(inputs, length, window.pad, 1)  # (N, D, R·length)
    g = _end_to_end(gradients, length, 0, window.stride)  # (N, F, R·length)
    used = x.shape[2] - window.reach
    taps = [
        np.matmul(g[:, :, :used], np.swapaxes(x[:, :, shift : shift + used], 1, 2))  # (N, F, D)
        for shift in range(0, window.reach + 1, window.dilate)
    ]
    return np.stack(taps, axis=3)


def _end_to_end(array: np.ndarray, length: int, start: int, step: int) -> np.ndarray:
    """A copy with the rows end to end, zeros between. Shapes: (N, R, C, W) → (N, C, R·length)."""
    num_examples, num_rows, channels, width = array.shape
    padded = np.zeros((num_examples, channels, num_rows, length), np.float32)
    padded[:, :, :, start : start + step * (width - 1) + 1 : step] = array.transpose(0, 2, 1, 3)
    return padded.reshape(num_examples, channels, -1)
