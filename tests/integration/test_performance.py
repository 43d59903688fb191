"""The ratios that the project lives by, with slack: a guard against what makes a step slow.

Each benchmark of results/performance.md runs with few rounds, and its bars are held with the slack
of `sections.Bar.guard`: what fails here is no busy machine but a pass too many over the gradients,
a loop in Python, an operator of the wrong kind.
"""

from dataclasses import replace

import pytest
from measuring import ROOT
from performance import measure
from sections import SECTIONS, Bar, Section

GPT2 = Section(  # with the pieces of a published GPT-2; results/methods_cost.md has what is shown
    "gpt2",
    "A language model's output layer",
    "step_cost.py --model gpt2 --pieces 50257 --variants dp_sgd_ghost",
    seconds=60,
    bars=(
        Bar("GPT2, dp_sgd_ghost ÷ sgd", limit=1.35, guard=2),
        Bar("GPT2, dp_sgd_ghost ÷ sgd, peak memory", limit=1.3, guard=1.7),
    ),
)
ALL = (*SECTIONS, GPT2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("section", ALL, ids=[section.name for section in ALL])
def test_the_ratios_hold_with_slack(section):
    if section.script.startswith("peers.py") and not (ROOT / ".venv-peers").exists():
        pytest.skip("it needs PyTorch, which benchmarks/setup_peers.sh installs into .venv-peers")
    # One thread: two that wait for each other on a busy machine measure that machine.
    result = measure(replace(section, script=f"{section.script} --rounds 3"), threads=1)
    assert result, "the benchmark failed; see above"
    figures = result["figures"]
    bars = {bar.figure: bar for bar in section.bars}
    worse = {
        name: (figures[name], bar.guard)
        for name, bar in bars.items()
        if not bar.holds(figures[name], limit=bar.guard)
    }
    assert not worse, f"beyond the limit with slack: {worse}"
