"""Spectra of single privacy losses, minus 1, so that sums of many keep their digits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence, Tuple

import numpy as np
from scipy.fft import rfft
from scipy.special import logsumexp

DIGITS = 4 * float(np.finfo(float).eps)  # of one level of an FFT


@dataclass(frozen=True)
class Spectra:
    """Spectra of tilted steps around a common centre, minus 1: small ones keep their digits.

    Attributes:
        centre: the index of a lattice point in the middle of the masses.
        log_moments: their log moments at λ, λ + θ and λ − θ'.
        less_one: the spectra, each of a total of 1, with `centre` at 0, minus 1.
        error: a bound on the error of each entry of `less_one`.

    Shapes: `log_moments` (masses, 3), `less_one` (masses, F), `error` (masses, F).
    """

    centre: int
    log_moments: np.ndarray
    less_one: Sequence[np.ndarray]
    error: Sequence[np.ndarray]

    def mixed(self, shares: Sequence[float], live: int) -> Tuple[np.ndarray, ...]:
        """Return log moments, the log of the spectrum and its error, for a mixture."""
        with np.errstate(divide="ignore"):
            log_parts = self.log_moments + np.log(np.array(shares))[:, None]  # (masses, 3)
        log_sum = logsumexp(log_parts, axis=0)  # (3,)
        parts = np.exp(log_parts[:, 0] - log_sum[0])  # (masses,)
        less_one = sum(part * one[:live] for part, one in zip(parts, self.less_one))
        error = sum(part * one[:live] for part, one in zip(parts, self.error))
        x, y = less_one.real, less_one.imag
        grown, square = x * (2 + x) + y * y, np.maximum((1 + x) ** 2 + y * y, 1e-300)  # (F,) each
        log_square = np.where(square < 0.5, np.log(square), np.log1p(np.maximum(grown, -0.6)))
        return log_sum, 0.5 * log_square + 1j * np.arctan2(y, 1 + x), error / np.sqrt(square)


def turn_of(size: int) -> np.ndarray:
    """Return e^(−2πi f / size) − 1 for all frequencies f."""
    half = -np.pi * np.arange(size // 2 + 1) / size  # (F,)
    return 2j * np.sin(half) * np.exp(1j * half)


def less_one(weights: np.ndarray, turn: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Return Σ w_k (z^k − 1) at z = e^(−2πi f / size) = 1 + `turn`, and a bound on its error.

    It equals (z − 1) (Σ_{i ≥ 0} P(k > i) z^i − Σ_{i < 0} P(k ≤ i) z^i): where z is near 1 no digits
    are lost, whatever the number of steps.
    """
    digits = DIGITS * math.log2(len(weights))
    tails = _tails(weights)
    norm, size = float(np.abs(tails).sum()), np.abs(turn)
    spectrum = turn * rfft(tails)[: len(turn)]
    error = size * norm * digits + DIGITS * np.abs(spectrum)
    moved = weights.copy()  # (size,)
    moved[0] = 0.0
    rest = float(moved.sum())
    near = int(np.searchsorted(size * norm, 2 * rest))  # from there on the plain form is more exact
    if near < len(turn):
        spectrum[near:] = rfft(moved)[near : len(turn)] - rest
        error[near:] = 2 * rest * digits
    return spectrum, error


def _tails(weights: np.ndarray) -> np.ndarray:
    """P(k > i) for i ≥ 0 and −P(k ≤ i) for i < 0, circular, as P(k) is."""
    half = (len(weights) + 1) // 2
    tails = np.zeros(len(weights))  # (size,)
    above, below = weights[half - 1 : 0 : -1], weights[half:]  # from the ends to the centre
    first = _first(above)  # nothing lies further out: few points hold any mass
    tails[: half - 1 - first] = np.cumsum(above[first:], dtype=np.longdouble)[::-1]
    first = _first(below)
    tails[half + first :] = -np.cumsum(below[first:], dtype=np.longdouble)
    return tails


def _first(values: np.ndarray) -> int:
    """The index of the first value that is not 0, or the length if all are."""
    is_there = values != 0
    return int(np.argmax(is_there)) if is_there.any() else len(values)
