"""What train, plan, init, data and sweep print fits 80 columns, on a corpus without slots."""

import pytest
from support.commands import CONFIGS, ROOT, edp_mx

from edp_mx.data.synthetic import make_utterances

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
NAME = "utterances_of_our_own_that_were_said_to_the_assistant.csv"
TINY = ("model.hidden_size=8", "data.embeddings.dimension=8", "training.epochs=2")
SWEEP = (
    "base: [mine.yaml]\nparameters: {training.learning_rate: [0.1, 0.2], training.epochs: [1], "
    "model.hidden_size: [8], data.embeddings.dimension: [8]}\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("width")
    said = make_utterances("communication", size=400, seed=1)
    rows = [f"{' '.join(each.tokens)},{each.intent},ann {i % 90}" for i, each in enumerate(said)]
    (folder / NAME).write_text("\n".join(["text,category,user", *rows, f"{'very ' * 70},call,x"]))
    for name in ("configs", "results", "launch"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def wide(*words, code=0):
    """The lines beyond 80 columns of what a command prints, but for those with a command."""
    ended = edp_mx(*words, code=code)
    lines = [line for line in (ended.stdout + ended.stderr).splitlines() if len(line) > 80]
    return [line for line in lines if " --" not in line and "edp-mx" not in line]


def test_each_line_fits(folder, monkeypatch):
    monkeypatch.chdir(folder)
    intent = ("--columns", "intent=category")
    assert wide("data", "check", NAME, *intent) == []
    assert wide("data", "describe", NAME, *intent) == []
    assert wide("data", "labels", NAME, *intent, "--out", "labels.json") == []
    assert wide("data", "merge", NAME, "health:50", "--out", "merged.jsonl.gz") == []
    init = ("init", NAME, *intent, "--labels-are-public", "--out", "mine.yaml")
    assert wide(*init) == [] and wide(*init, "--user-key", "user", "--force") == []
    assert wide("plan", "--num-examples", 9000, "--epsilon", 8) == []
    assert wide("train", "mine.yaml", "--check") == []
    assert wide("train", "mine.yaml", "--set", *TINY, "--run", "runs/private") == []
    layers = ("mine.yaml", CONFIGS / "recipe" / "without_privacy.yaml")
    assert wide("train", *layers, "--set", *TINY, "--run", "runs/without_privacy") == []
    (folder / "sweep.yaml").write_text(SWEEP)
    with (folder / "mine.yaml").open("a") as file:
        file.write("  learning_rates: {heads: 0.1}\n")
    assert wide("sweep", "sweep.yaml", "--out", "swept", "--budget-runs", 2) == []
