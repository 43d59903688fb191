"""Files of a run that are JSON, but not what a run writes."""

import pytest

from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory


@pytest.mark.parametrize(
    "name, content, told",
    [
        ("results", "[]", "it is something else, not an object"),
        ("results", '{"test": {"ser": "x"}}', "test.ser is 'x', not a number"),
        ("results", '{"test": {"ser": 1e308}}', "test.ser is 1e+308, not a number"),
        ("split", '{"train": [1]}', "train.0 is 1, not a text"),
        ("environment", '{"num_workers": 0}', "num_workers is 0, not a whole number from 1"),
        (
            "privacy",
            '{"holds": {"epsilon": true}}',
            "holds.epsilon is True, not a number, 0 or more",
        ),
        ("vocabulary", '{"words": "a"}', "words is 'a', not a list"),
    ],
)
def test_another_shape_is_refused_by_file_and_key(name, content, told, tmp_path):
    (tmp_path / f"{name}.json").write_text(content)
    with pytest.raises(UserError) as error:
        RunDirectory(tmp_path).read(name)
    assert str(error.value).startswith(f"{tmp_path / name}.json: {told}")


def test_a_missing_key_is_named_where_it_is_asked_for(tmp_path):
    run = RunDirectory(tmp_path)
    run.write("results", {"test": {"ser": 0.5}})
    assert run.read("results") == {"test": {"ser": 0.5}}
    assert run.read("results").get("baseline") is None
    with pytest.raises(UserError, match=r"results\.json lacks 'slot_f1'"):
        run.read("results")["test"]["slot_f1"]


@pytest.mark.parametrize("key", ["epoch", "intent_accuracy"])
def test_an_epoch_has_no_null_for_what_is_calculated_with(tmp_path, key):
    run = RunDirectory(tmp_path)
    run.metrics.write_text(f'{{"{key}": null}}\n{{}}\n')
    with pytest.raises(UserError, match=rf"metrics\.jsonl, line 1: {key} is None, not a"):
        run.epochs()


def test_an_epoch_is_of_numbers(tmp_path):
    run = RunDirectory(tmp_path)
    run.metrics.write_text('{"epoch": 1, "ser": 0.5}\n{"epoch": 2, "ser": "low"}\n')
    with pytest.raises(UserError, match=r"metrics\.jsonl, line 2: ser is 'low', not a number"):
        run.epochs()
    run.metrics.write_text('{"epoch": 1, "ser": 0.5}\n{"epoch": 2, "se')
    assert run.epochs() == [{"epoch": 1, "ser": 0.5}]  # torn by a crash
