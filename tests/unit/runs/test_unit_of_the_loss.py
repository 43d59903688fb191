"""A loss in another unit: α follows, the paper's count does not see it, the ε that holds does."""

import json

import pytest
from support.commands import edp_mx
from support.made_ledgers import plan_with

from edp_mx.dp.accounting.counting import count_as_published, count_what_holds

CONFIG = """
name: unit
data: {corpus: communication, size: 200, vocabulary: {source: sample}, labels: {source: sample}}
model: {family: clc, hidden_size: 4, character_filters: 4, dropout: 0.0}
training: {epochs: 2, batch_size: 16}
privacy:
  mechanism: edp_sgd
  variant: published
  noise_multiplier: 0.1
  layer_scales: first_batch
  layer_scales_unit: norm
  micro_batches_per_worker: 2
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs whose losses differ by a factor of ten; their privacy.json and α."""
    folder, found = tmp_path_factory.mktemp("unit"), []
    (folder / "unit.yaml").write_text(CONFIG)
    for factor in (1, 10):
        run, change = folder / f"times{factor}", f"training.loss_factor={factor}"
        edp_mx("train", folder / "unit.yaml", "--set", change, "--run", run)
        layers = json.loads((run / "layers.json").read_text())
        privacy = json.loads((run / "privacy.json").read_text())
        found.append((run, privacy, [layer["scale"] for layer in layers]))
    return found


def test_the_scales_follow_and_the_published_epsilon_does_not(runs):
    (_, one, scales), (_, ten, larger) = runs
    # the floor is relative, and the first batch the same
    assert larger == pytest.approx([10 * scale for scale in scales], rel=1e-4)
    assert max(scales) != 1 and one["scales_unit"] == ten["scales_unit"] == "norm"
    assert one["as_published"] == ten["as_published"]


def test_what_holds_if_the_scales_were_public_follows_their_square(runs):
    for _, privacy, scales in runs:
        assert privacy["holds"]["epsilon"] is None  # they are private
        rho = 2 / 2 * (2 * max(scales) * 2**0.5 / 0.1) ** 2  # two epochs, κ = 2, N = 2
        assert privacy["holds_if"]["rho"] == pytest.approx(rho, rel=1e-9)


def test_every_command_counts_from_the_ledger_with_its_scales(runs):
    run, privacy, _ = runs[1]
    counted = json.loads(edp_mx("account", run, "--json").stdout)
    assert counted["holds_if"]["rho"] == pytest.approx(privacy["holds_if"]["rho"], rel=1e-12)
    assert counted["ledger"]["differences"] == []
    assert "layer_scales_unit: norm" in " ".join(edp_mx("explain", run).stdout.split())


def test_check_says_that_it_is_not_known_yet(runs):
    config = runs[0][0].parent / "unit.yaml"
    public = ("--set", "privacy.layer_scales=public_batch")
    said = edp_mx("train", config, *public, "--check").stdout
    assert "not known before the training begins" in " ".join(said.split())
    refused = edp_mx("train", config, *public, "privacy.max_epsilon=3", "--check", code=2)
    assert "privacy.max_epsilon" in refused.stderr


def test_scales_released_from_private_data_may_not_set_the_price(runs):
    config = runs[0][0].parent / "unit.yaml"
    released = ("--set", "privacy.layer_scales=dp_release")
    refused = edp_mx("train", config, *released, "--check", code=2)
    assert "layer_scales_unit" in refused.stderr


def test_scales_are_counted_as_they_are_given():
    """The paper's CLC on ATIS without decay, log₁₀ ε 4.4, by 20 epochs and norms up to 9.52."""
    release = {"variant": "published", "layer_scales": (9.52, 0.763), "micro_batch_size": 4}
    plan = plan_with(release, noise_multiplier=0.0203, epochs=20, delta=5e-4, num_records=None)
    published = count_as_published(plan, plan.entries())
    assert published.epsilon.log10 == pytest.approx(4.4, abs=0.1)
    rho = 20 / 2 * (2 * 9.52 * 8**0.5 / 0.0203) ** 2  # κ = 2, N = 8
    assert count_what_holds(plan, plan.entries()).rho.value == pytest.approx(rho, rel=1e-9)
