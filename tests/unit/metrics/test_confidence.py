"""Calibration error, temperature, AUC and thresholds, each against a count of its own."""

import numpy as np
import pytest

from edp_mx.metrics.confidence import BINS, Confidences, best_temperature


def drawn(generator, *, size=4000, unknown=600, temperature=1.0):
    """Scores, and labels that were drawn from them at a temperature; −1 for some flat scores."""
    scores = generator.normal(0, 3, (size + unknown, 5))
    scores[size:] /= 3
    shares = np.exp(scores / temperature)
    shares /= shares.sum(axis=1, keepdims=True)
    labels = np.array([generator.choice(5, p=row) for row in shares])
    labels[size:] = -1
    return scores.astype(np.float32), labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_temperature_is_the_one_that_the_labels_were_drawn_at(generator, temperature):
    scores, labels = drawn(generator, size=20_000, temperature=temperature)
    found = best_temperature(scores, labels)
    assert found == pytest.approx(temperature, rel=0.08)
    errors = [
        Confidences.of(scores, labels, each).calibration_error() for each in (found, 3 * found)
    ]
    assert errors[0] < 0.02 < errors[1]


def test_the_calibration_error_is_a_mean_over_bins(generator):
    found = Confidences.of(*drawn(generator), 0.5)
    total, count = 0.0, int(found.is_known.sum())
    for bin_ in range(BINS):
        end = (bin_ + 1) / BINS if bin_ + 1 < BINS else np.inf
        rows = [n for n in np.flatnonzero(found.is_known) if bin_ / BINS <= found.sure[n] < end]
        if rows:
            gap = np.mean(found.sure[rows]) - np.mean(found.is_right[rows])
            total += len(rows) / count * abs(gap)
    assert found.calibration_error() == pytest.approx(total, rel=1e-9) and total > 0.01


def test_the_auc_counts_pairs(generator):
    found = Confidences.of(*drawn(generator, size=300, unknown=80), 1.0)
    known, unknown = found.sure[found.is_known], found.sure[~found.is_known]
    pairs = [(a > b) + (a == b) / 2 for a in known for b in unknown]
    assert found.auc() == pytest.approx(np.mean(pairs)) and np.mean(pairs) > 0.6


def test_a_threshold_is_counted_and_the_best_has_the_best_mean(generator):
    found = Confidences.of(*drawn(generator, size=300, unknown=80), 1.0)
    at = found.at(0.6)
    both = list(zip(found.sure, found.is_right, found.is_known))
    assert at.right == sum(s >= 0.6 and r for s, r, k in both if k) / 300
    assert at.refused == sum(s < 0.6 for s, _, k in both if k) / 300
    assert at.found == sum(s < 0.6 for s, _, k in both if not k) / 80
    best = found.at(found.best_threshold())
    assert 0 < best.threshold < 1 and best.right + best.found > at.right + at.found - 1e-12


def test_with_nothing_out_of_scope_there_is_no_auc(generator):
    found = Confidences.of(*drawn(generator, unknown=0), 1.0)
    assert found.auc() is None and found.at(0.5).found is None
