"""What is wrong with a call from Python is a UserError, in one sentence."""

import pytest

from edp_mx import api
from edp_mx.errors import UserError


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: api.train(), "name the configuration"),
        (lambda: api.train("-x.yaml"), "unrecognized arguments: -x.yaml"),
        (lambda: api.train("nowhere.yaml", run="-x"), r"nowhere\.yaml"),
        (lambda: api.attack("nowhere", lira="many"), "--lira"),
        (lambda: api.train("a.yaml", settings={"name": object()}), "settings: .*give numbers"),
    ],
)
def test_a_call_that_cannot_be_made_is_refused(capsys, call, said):
    with pytest.raises(UserError, match=said):
        call()
    assert capsys.readouterr().err == ""


def test_a_character_beyond_sixteen_bits_reaches_the_settings():
    (_, pair) = api._set({"name": "run \U0001f600"})
    assert pair == 'name="run \U0001f600"'
