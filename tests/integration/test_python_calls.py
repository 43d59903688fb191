"""The calls from Python, as their page shows them, beside what the commands say."""

import json
import sys

import pytest
from support.commands import edp_mx as command
from support.commands import from_a_shell
from support.documentation import ROOT, blocks

import edp_mx
from edp_mx.dp.accounting.lognumber import LogNumber


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The folder in which the page's code ran, in a process of its own, and what it printed.

    The page's configuration is there with fewer utterances and epochs.
    """
    folder = tmp_path_factory.mktemp("python")
    configs = folder / "configs"
    configs.mkdir()
    (configs / "mechanism").symlink_to(ROOT / "configs" / "mechanism")
    (configs / "quickstart.yaml").write_text(
        f"include: [{ROOT / 'configs' / 'quickstart.yaml'}]\ndata: {{size: 400}}\n"
        "model: {hidden_size: 16}\ntraining: {epochs: 2}\n"
    )
    code = "\n".join(blocks(ROOT / "docs" / "python.md", "python"))
    (folder / "page.py").write_text(f"import os\nos.chdir({str(folder)!r})\n{code}")
    return folder, from_a_shell(sys.executable, folder / "page.py").stdout


def test_the_page_prints_what_the_commands_say(shown):
    folder, said = shown
    run = folder / "runs" / "first"
    first, second, epsilons, *found, scores, refused = said.splitlines()
    texts = "call my parents at 0123", "play jazz"
    for line, text in zip((first, second), texts):
        answer = json.loads(command("predict", run, "--json", text).stdout)
        assert line.startswith(f"{answer['intent']}: ")
        assert line.endswith(f" {answer['intent_confidence']:.0%}")
    account = json.loads(command("account", run, "--json").stdout)
    numbers = [LogNumber.from_dict(account[kind]) for kind in ("as_published", "holds")]
    assert epsilons == " | ".join(number.in_words() for number in numbers)
    assert numbers[0].log != numbers[1].log
    attack = json.loads((run / "attack-threshold" / "attack.json").read_text())
    assert found == [f"{one['name']}: AUC {one['auc']['value']:.3f}" for one in attack["results"]]
    results = json.loads((run / "results.json").read_text())["test"]
    assert f"SER {results['ser']:.3f}, intents {results['intent_accuracy']:.3f}" in scores
    assert "training.epochs" in refused and "-1" in refused
    assert (run / "report.html").exists() and (run / "curves.png").exists()


def test_account_takes_a_delta_and_predict_a_path(shown):
    run = shown[0] / "runs" / "first"
    wide, narrow = edp_mx.account(run), edp_mx.account(str(run), delta=1e-9)
    assert narrow.plan.delta == 1e-9
    assert narrow.holds_if.epsilon.log > wide.holds_if.epsilon.log
    (answer,) = edp_mx.predict(run, [("call", "mum")])
    assert answer.utterance.tokens == ("call", "mum")


@pytest.mark.parametrize("nothing", ["", " ", [], ["call", " "], [1]])
def test_an_utterance_without_a_word_is_refused_by_its_number(shown, nothing):
    run = edp_mx.load(shown[0] / "runs" / "first")
    with pytest.raises(edp_mx.UserError, match="utterance 2"):
        edp_mx.predict(run, ["call mum", nothing])


def test_the_module_has_no_other_attribute():
    with pytest.raises(AttributeError, match="trian"):
        edp_mx.trian  # noqa: B018
