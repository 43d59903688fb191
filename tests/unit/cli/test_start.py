"""What all commands share: examples in their help, a start without MXNet, and who says an error."""

import argparse
import shlex

import pytest
from support.cli import parse, printed, without_mxnet
from support.commands import ROOT
from support.made_ledgers import plan_with, run_with, shuffled_line

from edp_mx import cli
from edp_mx.cli import SUBCOMMANDS
from edp_mx.errors import UserError

ACTIONS = {
    "audit": ("noise", "step", "one-run"),
    "checkpoint": ("fetch", "import", "describe"),
    "data": (
        "make",
        "fetch",
        "describe",
        "check",
        "text",
        "prompts",
        "words",
        "labels",
        "merge",
        "train-embeddings",
    ),
}
COMMANDS = [(name, *action) for name in SUBCOMMANDS for action in [(), *zip(ACTIONS.get(name, ()))]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(*command, "--help")
    assert ended.value.code == 0
    examples = capsys.readouterr().out.split("examples:")[1]
    assert f"edp-mx {' '.join(command)}" in examples or "launch/" in examples


@pytest.mark.parametrize("command, count", [("account", 5), ("calibrate", 5)])
def test_the_examples_of_what_needs_no_data_run(command, count, capsys, monkeypatch):
    with pytest.raises(SystemExit):
        parse(command, "--help")
    lines = capsys.readouterr().out.replace("\\\n", " ").splitlines()
    examples = [shlex.split(line)[1:] for line in lines if line.startswith(f"    edp-mx {command}")]
    assert len(examples) == count
    monkeypatch.chdir(ROOT)
    for example in examples:
        assert printed(capsys, *example)


@pytest.mark.parametrize(
    "words, said",
    [
        (("predict", "runs/a", "--set", "threshold=0.9", "call mum"),
         "edp-mx predict: argument --set: 'call mum' is not KEY=VALUE"),
        (("statement", "runs/a", "--out", "x.html"),
         "edp-mx statement: unrecognized arguments: --out x.html; see edp-mx statement --help"),
    ],
)  # fmt: skip
def test_what_is_no_option_of_a_command_is_said_with_its_help(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(*words)
    assert ended.value.code == 2 and said in capsys.readouterr().err


COMMANDS_WITHOUT_MODELS = """\
account --noise-multiplier 0.5 --epochs 10 --delta 5e-4 --json
account {run} --plot {new}/a.png
calibrate --target-epsilon 8 --epochs 10 --delta 5e-4
explain {run}
score {corpus} {corpus} --json
data make video --size 5 --out {new}/video
"""


def test_mxnet_is_loaded_by_no_command_that_needs_none(tmp_path):
    run = run_with(tmp_path / "run", plan_with(), [shuffled_line(epoch) for epoch in range(4)])
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"tokens": ["hi"], "slots": ["O"], "intent": "greet"}\n')
    lines = COMMANDS_WITHOUT_MODELS.format(run=run, corpus=corpus, new=tmp_path / "new")
    without_mxnet(*map(str.split, lines.splitlines()))


@pytest.mark.parametrize(
    ("rank", "is_shared", "is_said"),
    [("0", True, True), ("0", False, True), ("1", True, False), ("1", False, True)],
)
def test_a_shared_error_is_said_by_the_first_worker_alone(
    rank, is_shared, is_said, monkeypatch, capsys
):
    def run(_):
        raise UserError("a file is torn", is_shared=is_shared)

    monkeypatch.setattr(cli, "parse", lambda _: argparse.Namespace(run=run, command="train"))
    monkeypatch.setattr(cli, "OTHERS_WAIT", 0.0)
    monkeypatch.setenv("HOROVOD_RANK", rank)
    assert cli.main([]) == 2
    assert ("edp-mx train: a file is torn" in capsys.readouterr().err) == is_said
