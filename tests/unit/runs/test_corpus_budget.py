"""Which records are in several trainings, and what these spend on them together."""

import math
from pathlib import Path

import pytest
from support.made_ledgers import plan_with, run_with

from edp_mx.data.config import DataConfig
from edp_mx.data.utterance import Utterance
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.errors import UserError
from edp_mx.runs.corpus_budget import Spender, count_by_record, said_in, spenders_below


def spender(name, unit, *said):
    """A training of a unit on utterances, each of a user who says a word."""
    per_worker = {} if unit == "micro_batch" else {"micro_batch_size": 1}
    plan = plan_with({"unit": unit, **per_worker}).with_layer_scales([1.0])
    part = [
        Utterance((word,), ("O",), "x", user=user, id=f"{name}/{i}")
        for i, (user, word) in enumerate(said)
    ]
    return Spender(name, guarantee(plan, plan.entries()), said_in(part, DataConfig("health")))


def found(*spenders):
    """The trainings of each kind of record, how many records, and ρ relative to one training's."""
    one = spenders[0].spent.holds.rho.log
    return [
        (list(each.names), each.num_records, round(math.exp(each.bound.rho.log - one)))
        for each in count_by_record(spenders, delta=1e-5)
    ]


ANN = [("ann", "call"), ("ann", "stop"), ("bob", "call")]


def test_users_are_told_by_name_and_utterances_by_text():
    others = [("ann", "go"), ("cid", "stop")]
    assert found(spender("a", "user", *ANN), spender("b", "user", *others)) == [(["a", "b"], 1, 2)]
    texts = found(spender("a", "utterance", *ANN), spender("b", "utterance", *others))
    assert texts == [(["a", "b"], 1, 2)]  # "stop"


@pytest.mark.parametrize("is_copy", [False, True])
def test_users_by_other_names_are_the_same_people(is_copy):
    """From another column of the same lines, or of a copy whose names were changed."""
    words = [f"word{i}" for i in range(20)]
    first = spender("mine", "user", *((f"u{i // 4}", word) for i, word in enumerate(words)))
    second = spender(
        "copy" if is_copy else "mine",
        "user",
        *((f"v{i // 5}", each) for i, each in enumerate(words)),
    )
    assert first.shares_with(second) and second.shares_with(first)
    assert found(first, second) == [([first.name, second.name], 9, 2)]
    others = spender("others", "user", *(("w", f"other{i}") for i in range(18)), ("x", "word1"))
    assert not first.shares_with(others)


@pytest.mark.parametrize("shared", [("ann", "go"), ("", "stop")])
def test_an_utterance_is_in_a_training_of_users_if_its_user_is_or_its_text(shared):
    """Both protect it, each in its own way: there is no ε of both, rather than that of one."""
    of_users = spender("users", "user", *ANN)
    of_texts = spender("texts", "utterance", shared, ("", "new"))
    assert of_users.shares_with(of_texts) and of_texts.shares_with(of_users)
    with pytest.raises(UserError, match="protect one user .* and one utterance"):
        found(of_users, of_texts)


def test_a_line_that_is_read_by_other_columns_is_the_same_record():
    """What was read of it is another text, but a training has seen the same line."""
    first = spender("mine", "utterance", ("", "subject"), ("", "other"))
    second = spender("mine", "utterance", ("", "body"))
    assert first.shares_with(second) and second.shares_with(first)
    assert found(first, second) == [(["mine", "mine"], 1, 2)]


def test_a_reply_is_the_same_record_whatever_its_prompt():
    reply = "your train leaves at noon"
    lines = [reply, f"when do I leave <|reply|> {reply}", f"offer time <|reply|> {reply}"]
    texts = set()
    for number, line in enumerate(lines):
        tokens = tuple(line.split())
        one = Utterance(tokens, ("O",) * len(tokens), "reply", id=f"{number}")
        texts.update(said.text for said in said_in([one], DataConfig("health")))
    assert len(texts) == 1


def test_trainings_without_a_common_record_stay_apart():
    of_users, of_texts = (
        spender("users", "user", *ANN),
        spender("texts", "utterance", ("cid", "go")),
    )
    assert not of_users.shares_with(of_texts)
    assert sorted(found(of_users, of_texts)) == [(["texts"], 1, 1), (["users"], 2, 1)]


def test_a_run_without_its_ledger_is_not_taken_as_one_without_privacy(tmp_path):
    for name, mechanism in (("lost", "dp_sgd"), ("kept", "none")):
        (tmp_path / name).mkdir()
        privacy = f"privacy: {{mechanism: {mechanism}}}"
        (tmp_path / name / "config.yaml").write_text(f"data: {{corpus: atis}}\n{privacy}\n")
        (tmp_path / name / "environment.json").write_text("{}")
    with pytest.raises(UserError, match="lost has lost its privacy_ledger.jsonl"):
        spenders_below([tmp_path])
    (tmp_path / "lost" / "config.yaml").unlink()
    with pytest.raises(UserError, match="has no run with a privacy_ledger"):
        spenders_below([tmp_path])


def test_no_training_is_overlooked(tmp_path):
    """Files beside a training hide nothing, and links lead to it, each training once."""
    project, archive = tmp_path / "project", tmp_path / "archive"
    for folder in (project / "runs" / "a", project / "library", archive / "b"):
        run_with(folder, plan_with(), [])
    for beside in ("config.yaml", "runs/runs.jsonl", "runs/attacks.jsonl"):
        (project / beside).write_text("")
    (project / "runs" / "b").symlink_to(archive / "b")
    (project / "runs" / "round").symlink_to(project)
    for paths in ([archive, project], [project]):
        found = [Path(each.name).resolve().relative_to(tmp_path) for each in spenders_below(paths)]
        assert list(map(str, found)) == ["archive/b", "project/library", "project/runs/a"]
