"""Sums of independent privacy losses on a lattice, by FFT, tilted so that tails keep digits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Iterable, Sequence, Tuple

import numpy as np
from scipy.fft import irfft, next_fast_len
from scipy.special import logsumexp

from edp_mx.dp.accounting.pld.spectrum import DIGITS, Spectra, less_one, turn_of
from edp_mx.dp.accounting.pld.window import Window

TOLERANCE = 4e-6  # of ε and of the variance, relative, for rounding to the lattice
SMALLEST_SIZE, LARGEST_SIZE = 2**15, 2**20  # points of a lattice, unless finer ones are asked for
NEGLIGIBLE = 60.0  # frequencies below e^−60 are left out


@dataclass(frozen=True)
class Lattice:
    """A window of a lattice and a tilt.

    Attributes:
        spacing: between points; a point of index i is the loss i · spacing.
        first: index of the first point of the window.
        tilt: λ; masses are kept times e^(λ · loss).
        reach: how far above (θ) and below (θ') the tilt Chernoff's bound is taken, for the mass
            right and left of the window.
    """

    spacing: float
    first: int
    size: int
    tilt: float
    reach: Tuple[float, float]

    def coarser(self, times: int) -> Lattice:
        """Return a lattice of the same window with points that many times further apart."""
        size = next_fast_len(self.size // times + 2, real=True)
        return replace(
            self, spacing=self.spacing * times, first=math.floor(self.first / times), size=size
        )

    @property
    def losses(self) -> np.ndarray:
        return (self.first + np.arange(self.size)) * self.spacing  # (size,)


@dataclass(frozen=True)
class Mass:
    """Masses at lattice points, which need not sum to 1. Shapes: (A,) each."""

    index: np.ndarray
    log_mass: np.ndarray


@dataclass(frozen=True)
class Group:
    """Runs of equal steps, which are mixtures of the same masses with the given shares."""

    masses: Sequence[Mass]
    steps: Sequence[Tuple[int, Sequence[float]]]


@dataclass(frozen=True)
class Sum:
    """The sum of all losses: a mass at loss l is `tilted` · e^(log_scale − tilt · l).

    Attributes:
        tilted: sums to about 1.
        log_scale: K(λ).
        log_right, log_left: bounds on the tilted mass right and left of the window. `tilted` has it
            at the opposite end, since the FFT is circular.
        rounding, rounding_norm: bounds on the error of each entry of `tilted`, and on the Euclidean
            norm of all of them.
    """

    tilted: np.ndarray
    log_scale: float
    log_right: float
    log_left: float
    rounding: float
    rounding_norm: float

    def error_from_the_right(self, decay: float) -> float:
        """Bound the rounding of Σ_{j ≥ k} tilted_j e^(−decay (j − k)), whatever k.

        The smaller of the sum of the entries' bounds and the inequality of Cauchy and Schwarz.
        """
        size = len(self.tilted)
        terms = min(size, -1 / math.expm1(-decay)) if decay > 0 else size
        squares = min(size, -1 / math.expm1(-2 * decay)) if decay > 0 else size
        return min(self.rounding * terms, self.rounding_norm * math.sqrt(squares))


def make_lattice(window: Window, *, finer: float = 1.0, largest: int = LARGEST_SIZE) -> Lattice:
    """Build a lattice of at most `largest` points, as fine as the scales of its window require.

    Rounding adds up to steps · spacing² / 6 to the variance of the sum, which moves ε by half of
    that, times 1 + λ.
    """
    variance, mean = window.stddev**2, window.mean
    allowed = variance if mean <= 0 else min(variance, mean / (1 + window.tilt))
    width = window.right - window.left
    wanted = width * math.sqrt(window.steps / (6 * TOLERANCE * allowed))
    points = min(min(max(wanted, SMALLEST_SIZE), LARGEST_SIZE) * finer, largest)
    spacing = width / points
    size = next_fast_len(int(points) + 2, real=True)
    first = math.floor(window.left / spacing)
    return Lattice(spacing, first, size, window.tilt, window.reach)


def split_up(loss: np.ndarray, log_mass: np.ndarray, spacing: float) -> Mass:
    """Move each mass to the two points around it, keeping P and Q: divergence never falls.

    Source: Doroshenko et al. (2022), "Connect the Dots", Theorem 3.1; here atom by atom.
    """
    below = np.floor(loss / spacing).astype(np.int64)  # (A,)
    ahead = loss - below * spacing
    with np.errstate(divide="ignore"):
        up = np.clip(np.expm1(-ahead) / math.expm1(-spacing), 0.0, 1.0)
        parts = [log_mass + np.log1p(-up), log_mass + np.log(up)]
    return Mass(np.concatenate([below, below + 1]), np.concatenate(parts))


def convolve(lattice: Lattice, groups: Iterable[Group]) -> Sum:
    """Return the distribution of the sum over the steps of all groups."""
    turn = turn_of(lattice.size)  # (F,)
    total = np.zeros(lattice.size // 2 + 1, dtype=complex)  # (F,), log of the spectrum
    error = np.zeros(lattice.size // 2 + 1)  # (F,), of it
    log_scale, alias, shift = 0.0, np.zeros(2), 0
    for group in groups:
        steps = _transform(lattice, group.masses, turn[: len(total)])
        for count, shares in group.steps:
            log_moments, log_step, error_step = steps.mixed(shares, len(total))
            total, error = total + count * log_step, error + count * error_step
            live = _live(total)
            total, error = total[:live], error[:live]
            log_scale += count * float(log_moments[0])
            alias += count * (log_moments[1:] - log_moments[0])
            shift += count * steps.centre
    return _back(lattice, total, error, log_scale, alias, shift)


def _transform(lattice: Lattice, masses: Sequence[Mass], turn: np.ndarray) -> Spectra:
    """The spectra of some tilted steps."""
    right, left = lattice.reach
    tilts = lattice.tilt + np.array([0.0, right, -left])  # (3,)
    logs, spectra = [], []
    centre = None
    for mass in masses:
        loss = mass.index * lattice.spacing  # (A,)
        logs.append([logsumexp(mass.log_mass + tilt * loss) for tilt in tilts])
        weights = np.exp(mass.log_mass + lattice.tilt * loss - logs[-1][0])  # (A,)
        if centre is None:
            centre = int(round(float(weights @ mass.index)))
        place = (mass.index - centre) % lattice.size  # (A,)
        spectra.append(less_one(np.bincount(place, weights, lattice.size), turn))
    return Spectra(centre or 0, np.array(logs), *zip(*spectra))


def _live(log_spectrum: np.ndarray) -> int:
    """The number of frequencies worth keeping: later factors only make them smaller."""
    above = np.flatnonzero(log_spectrum.real > -NEGLIGIBLE)
    return int(above[-1]) + 1 if len(above) else 1


def _back(
    lattice: Lattice,
    log_spectrum: np.ndarray,
    error: np.ndarray,
    log_scale: float,
    alias: np.ndarray,
    shift: int,
) -> Sum:
    """From the spectrum to masses."""
    spectrum = np.zeros(lattice.size // 2 + 1, dtype=complex)
    spectrum[: len(log_spectrum)] = np.exp(log_spectrum)
    circular = irfft(spectrum, lattice.size)  # (size,), from `shift` on, modulo size
    if not np.isfinite(circular).all():
        raise ValueError("the sum of privacy losses is not a number; its masses are not either")
    right, left = lattice.reach
    end = (lattice.first + lattice.size) * lattice.spacing
    size = np.abs(spectrum)  # (F,)
    wrong = size[: len(error)] * error / len(size)
    norm = DIGITS * math.log2(lattice.size) * math.sqrt(float((size**2).mean()))
    return Sum(
        tilted=np.roll(circular, (shift - lattice.first) % lattice.size),
        log_scale=log_scale,
        log_right=float(alias[0]) - right * end,
        log_left=float(alias[1]) + left * lattice.first * lattice.spacing,
        rounding=float(wrong.sum()) + norm + math.exp(-NEGLIGIBLE),
        rounding_norm=math.sqrt(float((wrong**2).sum() * len(size))) + norm + math.exp(-NEGLIGIBLE),
    )
