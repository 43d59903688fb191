"""What the page says of a run of DP-SGD: of each utterance, and not of a micro-batch."""

from __future__ import annotations

import pytest
from support.made_ledgers import facts_with, write_ledger

from edp_mx.accounting.ledger_account import account_for
from edp_mx.accounting.version_1 import plan_of_version_1
from edp_mx.reports.explanation import explain


@pytest.fixture
def page(tmp_path):
    """The page of a run that went as planned, without line breaks."""

    def read(**release):
        sampler = release.get("sampler", "shuffle")
        facts = facts_with(release={"clips": "example", **release}, mechanism="dp_sgd",
                           sampler=sampler, noise_multiplier=1.5)  # fmt: skip
        lines = [entry.to_dict() for entry in plan_of_version_1(facts).entries()]
        account = account_for(write_ledger(tmp_path / "ledger.jsonl", facts, lines))
        return " ".join(explain(account, name="run").split()), account

    return read


@pytest.mark.parametrize("sampler", ["shuffle", "poisson"])
@pytest.mark.parametrize("adjacency, kappa, moves", [
    ("zero_out", 1, "(C)"), ("replace_one", 2, "(2 C, when one replaces another)")])  # fmt: skip
def test_it_says_what_is_clipped_and_how_far_one_utterance_moves(
    page, sampler, adjacency, kappa, moves
):
    text, account = page(sampler=sampler, adjacency=adjacency)
    assert "Each utterance's gradient is clipped to C by itself" in text
    assert f"kappa = {kappa}" in text and moves in text
    assert "clipped mean" not in text
    assert str(account.spent.as_published.epsilon) in text
    assert account.differences == ()
    assert ("approximate, and it is not a bound" in text) is (sampler == "poisson")
    assert "someone who sees the messages of a single worker" in text and "dropout" in text
