"""Sums of independent privacy losses on a lattice, by FFT, tilted so that tails keep digits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Iterable, Sequence, Tuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import logsumexp

EPSILON = float(np.finfo(float).eps)
TOLERANCE = 4e-6  # of ε and of the variance, relative, for rounding to the lattice
SMALLEST_SIZE, LARGEST_SIZE = 2**15, 2**20  # points of a lattice
NEGLIGIBLE = 60.0  # frequencies below e^−60 are left out
LOG_ALIAS = 40.0  # what lies outside the window: e^−40 of the tilted mass


@dataclass(frozen=True)
class Lattice:
    """A window of a lattice and a tilt.

    Attributes:
        spacing: between points; a point of index i is the loss i · spacing.
        first: index of the first point of the window.
        size: points in the window.
        tilt: λ; masses are kept times e^(λ · loss).
        reach: how far above (θ) and below (θ') the tilt Chernoff's bound is taken for what lies
            right and left of the window.
    """

    spacing: float
    first: int
    size: int
    tilt: float
    reach: Tuple[float, float]

    @property
    def losses(self) -> np.ndarray:
        """The losses of the window."""
        return (self.first + np.arange(self.size)) * self.spacing  # (size,)


@dataclass(frozen=True)
class Mass:
    """Masses at lattice points; need not sum to 1.

    Shapes: `index` (integers) and `log_mass` (A,).
    """

    index: np.ndarray
    log_mass: np.ndarray


@dataclass(frozen=True)
class Group:
    """Steps that mix the same masses.

    Attributes:
        masses: what is mixed.
        steps: for each run of equal steps their number and the share of each of the masses.
    """

    masses: Sequence[Mass]
    steps: Sequence[Tuple[int, Sequence[float]]]


@dataclass(frozen=True)
class Sum:
    """The sum of all losses: a mass at loss l is `tilted` · e^(log_scale − tilt · l).

    Attributes:
        tilted: sums to about 1.
        log_scale: K(λ).
        log_right, log_left: bounds on the tilted mass right and left of the window. It is also in
            `tilted`, at the other end (the FFT is circular).
        rounding: of each entry of `tilted`, at most.
    """

    lattice: Lattice
    tilted: np.ndarray
    log_scale: float
    log_right: float
    log_left: float
    rounding: float


def make_lattice(
    *,
    left: float,
    right: float,
    mean: float,
    stddev: float,
    steps: int,
    tilt: float,
    reach: Tuple[float, float],
) -> Lattice:
    """A lattice from `left` to `right`, if it can be so fine.

    Rounding adds up to steps · spacing² / 6 to the variance of the sum, which moves ε by half of
    that, times 1 + λ.
    """
    allowed = stddev**2 if mean <= 0 else min(stddev**2, mean / (1 + tilt))
    wanted = (right - left) * math.sqrt(steps / (6 * TOLERANCE * allowed))
    points = min(max(wanted, SMALLEST_SIZE), LARGEST_SIZE)
    spacing = (right - left) / points
    size = next_fast_len(int(points) + 2, real=True)
    return Lattice(spacing, math.floor(left / spacing), size, tilt, reach)


def split_up(loss: np.ndarray, log_mass: np.ndarray, spacing: float) -> Mass:
    """Each mass on the two points around it, P and Q kept in sum: never less divergence.

    Source: Doroshenko et al. (2022), "Connect the Dots", Theorem 3.1; here atom by atom.
    """
    below = np.floor(loss / spacing).astype(np.int64)  # (A,)
    ahead = loss - below * spacing
    with np.errstate(divide="ignore"):
        up = np.clip(np.expm1(-ahead) / math.expm1(-spacing), 0.0, 1.0)
        parts = [log_mass + np.log1p(-up), log_mass + np.log(up)]
    return Mass(np.concatenate([below, below + 1]), np.concatenate(parts))


def nearest(loss: np.ndarray, log_mass: np.ndarray, spacing: float) -> Mass:
    """Each mass on the nearest point: a statistic to test by, whatever it is worth."""
    return Mass(np.rint(loss / spacing).astype(np.int64), log_mass)


def convolve(lattice: Lattice, groups: Iterable[Group]) -> Sum:
    """The distribution of the sum over the steps of all groups."""
    total = np.zeros(lattice.size // 2 + 1, dtype=complex)  # (F,), log of the spectrum
    log_scale, alias, steps = 0.0, np.zeros(2), 0
    for group in groups:
        spectra, logs = zip(*(_transform(lattice, mass, len(total)) for mass in group.masses))
        log_moments = np.array(logs)  # (masses, 3)
        for count, shares in group.steps:
            with np.errstate(divide="ignore"):
                log_parts = log_moments + np.log(np.array(shares))[:, None]
            log_sum = logsumexp(log_parts, axis=0)  # (3,)
            parts = np.exp(log_parts[:, 0] - log_sum[0])
            mixed = sum(part * spectrum[: len(total)] for part, spectrum in zip(parts, spectra))
            with np.errstate(divide="ignore"):
                total = total + count * np.log(mixed)
            total = total[: _live(total)]
            log_scale += count * float(log_sum[0])
            alias += count * (log_sum[1:] - log_sum[0])
            steps += count
    return _back(lattice, total, log_scale, alias, steps)


def _transform(lattice: Lattice, mass: Mass, live: int) -> Tuple[np.ndarray, np.ndarray]:
    """The spectrum of one tilted step, and its log moments at λ, λ + θ and λ − θ'."""
    loss = mass.index * lattice.spacing  # (A,)
    right, left = lattice.reach
    exponents = mass.log_mass + lattice.tilt * loss
    moments = np.array(
        [
            logsumexp(exponents),
            logsumexp(exponents + right * loss),
            logsumexp(exponents - left * loss),
        ]
    )
    weights = np.bincount(
        mass.index % lattice.size, weights=np.exp(exponents - moments[0]), minlength=lattice.size
    )
    return rfft(weights)[:live], moments


def _live(log_spectrum: np.ndarray) -> int:
    """How many frequencies are worth keeping: later factors only make them smaller."""
    above = np.flatnonzero(log_spectrum.real > -NEGLIGIBLE)
    return int(above[-1]) + 1 if len(above) else 1


def _back(
    lattice: Lattice, log_spectrum: np.ndarray, log_scale: float, alias: np.ndarray, steps: int
) -> Sum:
    """From the spectrum to masses."""
    spectrum = np.zeros(lattice.size // 2 + 1, dtype=complex)
    spectrum[: len(log_spectrum)] = np.exp(log_spectrum)
    circular = irfft(spectrum, lattice.size)  # (size,), at index modulo size
    right, left = lattice.reach
    end = (lattice.first + lattice.size) * lattice.spacing
    size = np.abs(spectrum)
    digits = 4 * EPSILON * math.log2(lattice.size)
    return Sum(
        lattice=lattice,
        tilted=np.roll(circular, -(lattice.first % lattice.size)),
        log_scale=log_scale,
        log_right=float(alias[0]) - right * end,
        log_left=float(alias[1]) + left * lattice.first * lattice.spacing,
        rounding=digits * (steps * float(size.mean()) + math.sqrt(float((size**2).mean())))
        + math.exp(-NEGLIGIBLE),
    )
