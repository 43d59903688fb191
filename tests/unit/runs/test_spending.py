"""What a run may spend: written down before it is released, refused where it cannot be known."""

import dataclasses

import numpy as np
import pytest
from support.made_ledgers import plan_with, poisson_plan

from edp_mx.accounting.counting import count_what_holds
from edp_mx.accounting.ledger import read_ledger
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.spending import Spending
from edp_mx.runtime.distributed import Workers
from edp_mx.training.state import TrainingState

ALONE = Workers(rank=0, size=1, local_rank=0, local_size=1)
SCALES = (0.5, 1.0)
ALPHA = plan_with(scales_source="dp_release", scales_multiplier=1.0)


@pytest.fixture
def directory(tmp_path):
    return RunDirectory(tmp_path)


def start(plan, directory):
    return Spending(plan, ALONE, directory)


def begun(plan, directory, *, epochs=1):
    """A run that has released some epochs, as it writes it down."""
    spending = start(plan, directory)
    if spending.known_scales() is None:
        spending.complete(SCALES)
        directory.write("layers", [])
    for epoch in range(epochs):
        spending.permit(epoch)
    return spending


def write_checkpoint(spending, directory):
    mark = spending.mark()
    TrainingState(
        epochs=1, seconds=1.0, best_ser=1.0, best_epoch=0, weights={"w": np.zeros(2)},
        optimizer={}, best={}, ledger_size=mark.size, ledger_digest=mark.digest,
    ).write(directory.checkpoint)  # fmt: skip


def test_a_run_writes_its_plan(directory):
    spending = begun(ALPHA, directory, epochs=4)
    ledger = read_ledger(directory.ledger)
    assert ledger.entries == ALPHA.entries()
    assert ledger.plan == spending.plan == ALPHA.with_layer_scales(SCALES)
    assert spending.spent() == spending.planned()
    assert spending.spent().to_dict()["layer_scales"] == list(SCALES)


def test_a_resumed_run_knows_alpha_and_counts_what_it_repeats(directory):
    spending = begun(ALPHA, directory, epochs=2)
    write_checkpoint(spending, directory)
    spending.permit(2)
    resumed = start(ALPHA, directory)
    assert resumed.known_scales() == SCALES
    resumed.complete(SCALES)
    resumed.permit(2)
    assert [entry.what for entry in read_ledger(directory.ledger).entries] == [
        "layer scales", "epoch 0", "epoch 1", "epoch 2", "epoch 2",
    ]  # fmt: skip


def test_a_checkpoint_without_its_ledger_is_refused(directory):
    write_checkpoint(begun(ALPHA, directory), directory)
    directory.ledger.unlink()
    for has_checkpoint in (True, False):  # layers.json alone says that the run had begun
        if not has_checkpoint:
            directory.checkpoint.unlink()
        with pytest.raises(UserError, match="nobody knows what") as caught:
            start(ALPHA, directory)
        assert "\n" not in str(caught.value) and not directory.ledger.exists()


def test_alpha_beyond_the_budget_is_refused_before_it_is_written(directory):
    """z_a = 1 costs more than 0.5 by itself."""
    spending = start(dataclasses.replace(ALPHA, max_epsilon=0.5), directory)
    with pytest.raises(UserError, match="that the layer scales cost"):
        spending.known_scales()
    assert read_ledger(directory.ledger).entries == ()


def test_alpha_lost_in_a_crash_is_paid_for_again_or_refused(directory):
    (alpha,) = ALPHA.scales_entries()
    costs = [count_what_holds(ALPHA, n * [alpha]).epsilon.value for n in (1, 2)]
    plan = dataclasses.replace(ALPHA, max_epsilon=0.5 * sum(costs))
    assert start(plan, directory).known_scales() is None  # written down, released, and lost
    with pytest.raises(UserError, match="that the layer scales cost"):
        start(plan, directory).known_scales()
    assert read_ledger(directory.ledger).entries == (alpha,)


def test_a_budget_that_is_blind_is_refused_before_anything_is_written(directory):
    plan = plan_with(max_epsilon=5.0, private_inputs=["vocabulary"])
    with pytest.raises(UserError, match="privacy.max_epsilon: epsilon is infinite"):
        start(plan, directory).known_scales()
    assert read_ledger(directory.ledger).entries == ()


def test_the_budget_ends_a_run_in_the_middle_of_a_poisson_epoch(directory):
    plan = poisson_plan()
    limit = count_what_holds(plan, (plan.entry(0), plan.entry(1, 40))).epsilon.value
    spending = begun(dataclasses.replace(plan, max_epsilon=limit * (1 + 1e-7)), directory)
    assert spending.permit(1) == 40
    assert spending.permit(2) == 0
    assert [entry.event.count for entry in read_ledger(directory.ledger).entries] == [70, 40]
    assert spending.spent().holds.epsilon.value <= spending.plan.max_epsilon


def test_without_a_mechanism_nothing_is_written(directory):
    plan = dataclasses.replace(plan_with(), release=None)
    spending = start(plan, directory)
    assert spending.permit(0) == plan.steps_per_epoch and spending.mark() is None
    assert spending.spent().holds.epsilon.is_infinite
    assert not directory.ledger.exists()
