"""What is wrong with a call from Python is a UserError, in one sentence."""

import pytest
from support.commands import QUICKSTART
from support.refusals import one_sentence

from edp_mx import api


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: api.train(), "name the configuration"),
        (lambda: api.train("-x.yaml"), "cannot read the configuration -x.yaml"),
        (lambda: api.train("nowhere.yaml", run="-x"), r"nowhere\.yaml"),
        (lambda: api.attack("nowhere"), "nowhere is not a run directory"),
        (lambda: api.attack("nowhere", lira="many"), "lira is 'many'; give the number"),
        (lambda: api.attack("nowhere", settings={"training.epochs": 1}), "no model is trained"),
        (lambda: api.train(QUICKSTART, settings={"name": object()}), "settings.*name: "),
        (lambda: api.train(QUICKSTART, settings={1: 2}), "1: there is no such key"),
    ],
)
def test_a_call_that_cannot_be_made_is_refused(capsys, call, said):
    one_sentence(said, call)
    assert capsys.readouterr().err == ""
