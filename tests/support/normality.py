"""Statistics of a long stream of normal numbers, block by block, and the bounds that they keep."""

from math import factorial, sqrt

import numpy as np
from scipy import stats

BINS = 4096  # of equal probability, for the distribution function
TAILS = (1, 2, 3, 4, 5, 6)
LAGS = (1, 2, 3, 16, 1000)


def normal(stream, size):
    """Standard normal numbers, (size,) float32."""
    values = np.zeros(size, np.float32)
    stream.scale_and_add(values, factor=1.0, stddev=1.0)
    return values


class Normality:
    """Adds up what blocks of numbers of one worker say.

    Every figure is a sum or a count over independent normal numbers (for the lags: uncorrelated
    products), so that its standard error is known, and `refuse` compares it with Z of them.

    Args:
        grid: the step to which the numbers are rounded; 0 for none.
    """

    def __init__(self, grid=0.0):
        self.grid, self.count = grid, 0
        self.powers = np.zeros(9)  # sums of y^k
        self.edges = stats.norm.ppf(np.arange(1, BINS) / BINS)
        self.places = np.zeros(BINS, np.int64)
        self.beyond = {bound: [0, 0] for bound in TAILS}  # below and above
        self.products = {lag: [0.0, 0.0, 0] for lag in LAGS}  # of values, of squares, how many

    def add(self, values):
        values = values.astype(np.float64)
        self.count += len(values)
        power = np.ones_like(values)
        for k in range(1, 9):
            power *= values
            self.powers[k] += power.sum()
        self.places += np.histogram(values, np.r_[-np.inf, self.edges, np.inf])[0]
        for bound, found in self.beyond.items():
            found[0] += int((values < -bound).sum())
            found[1] += int((values > bound).sum())
        squares = values**2 - 1
        for lag, found in self.products.items():
            found[0] += float(values[lag:] @ values[:-lag])
            found[1] += float(squares[lag:] @ squares[:-lag])
            found[2] += len(values) - lag

    def deviations(self):
        """Every figure's distance from a normal number's, in standard errors, by name."""
        n, found = self.count, {}
        for k in range(1, 9):
            mean, variance = moment(k), moment(2 * k) - moment(k) ** 2
            # Rounding to a grid moves the k-th moment by terms of grid²/24 k (k − 1) E y^(k−2).
            moved = 0 if k < 2 else self.grid**2 / 24 * k * (k - 1) * moment(k - 2)
            found[f"moment {k}"] = (self.powers[k] / n - mean - moved) / sqrt(variance / n)
        for bound, sides in self.beyond.items():
            # A number on the grid is beyond a multiple of it from half a step more.
            expected = n * stats.norm.sf(bound + self.grid / 2)
            for side, number in zip(("below", "above"), sides):
                tail = stats.poisson(expected)
                least = min(tail.cdf(number), tail.sf(number - 1))
                found[f"tail {bound} {side}"] = -stats.norm.ppf(max(least, 1e-300))
        for lag, (values, squares, pairs) in self.products.items():
            found[f"lag {lag}"] = values / sqrt(pairs)
            found[f"lag {lag} of squares"] = squares / (2 * sqrt(pairs))
        return found

    def largest_distance(self):
        """Kolmogorov's distance at the bins' edges, times √n, beyond what a grid may add to it."""
        expected = np.arange(1, BINS) / BINS
        distance = abs(self.places.cumsum()[:-1] / self.count - expected).max()
        room = self.grid / 2 * stats.norm.pdf(0)  # of the distribution function, by half a step
        return max(0.0, distance - room) * sqrt(self.count)

    def refuse(self, *, errors):
        """Fail where a figure, or the distribution function, is as far away as so many errors."""
        for name, deviation in self.deviations().items():
            assert abs(deviation) < errors, (name, deviation)
        rare = 2 * stats.norm.sf(errors)
        assert stats.kstwobign.sf(self.largest_distance()) > rare


def moment(k):
    """E y^k of a normal number."""
    return 0 if k % 2 else factorial(k) // (2 ** (k // 2) * factorial(k // 2))


def correlation(one, other):
    """Of two workers' numbers, and of their squares, in standard errors."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    squares = ((one**2 - 1) @ (other**2 - 1)) / (2 * sqrt(len(one)))
    return (one @ other) / sqrt(len(one)), squares
