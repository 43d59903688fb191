"""A ledger of another type in any field is refused by the field's name, also with a sound chain."""

import json

import pytest
from support.made_ledgers import plan_with, poisson_plan, write_plan

from edp_mx.dp.accounting.chain import Chain
from edp_mx.dp.accounting.ledger_account import account_for
from edp_mx.errors import UserError

OTHERS = [True, "x", [1], {"a": 1}]


def tied(path, values):
    """Write the lines anew with hashes that hold, as somebody would who edits a ledger."""
    chain = Chain()
    path.write_bytes(b"".join(chain.add(value) for value in values))
    return path


def lines_of(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("line", "sha256")} for line in lines]


def changes(value, place=()):
    """(place, another value) of each field, at any depth."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from changes(inner, (*place, key))
        for other in OTHERS:
            yield (*place, key), other


def changed(value, place, other):
    first, *rest = place
    return {**value, first: changed(value[first], rest, other) if rest else other}


FLAGS = ["seed_is_fixed", "chooses_checkpoint", "stops_early"]
FITTING = [(("plan", flag), True) for flag in FLAGS]  # on lines 1 to 3
ALPHA = ("plan", "release", "layer_scales"), [1]
FITTING = [[*FITTING, ALPHA], [(("layer_scales",), [1])], [(("what",), "x")]]


@pytest.mark.parametrize("plan", [plan_with(), poisson_plan()], ids=["shuffle", "poisson"])
def test_what_is_of_another_type_is_refused_by_its_line(tmp_path, plan):
    path = write_plan(tmp_path / "l", plan, scales=[1.0])
    lines = lines_of(path)
    for number, fitting in enumerate(FITTING):
        taken = []
        for place, other in changes(lines[number]):
            given = list(lines)
            given[number] = changed(lines[number], place, other)
            try:
                account_for(tied(path, given))
                taken.append((place, other))
            except UserError as error:
                assert f"line {number + 1}: " in str(error) and "\n" not in str(error)
        assert sorted(taken) == sorted(fitting)


def test_a_field_that_holds_a_list_is_named(tmp_path):
    path = write_plan(tmp_path / "l", plan_with(), scales=[1.0])
    head, *rest = lines_of(path)
    for place in (("plan", "max_epsilon"), ("plan", "decay", "rate"), ("plan", "seed_is_fixed"),
                  ("plan", "release", "clip_rule"), ("plan", "scales_multiplier")):  # fmt: skip
        with pytest.raises(UserError, match=rf"line 1: .*{'.'.join(place[1:])}.*\[1\]"):
            account_for(tied(path, [changed(head, place, [1]), *rest]))


def test_a_line_break_in_a_line_s_number_is_spelled_out(tmp_path):
    path = write_plan(tmp_path / "l", plan_with())
    path.write_bytes(path.read_bytes().replace(b'"line": 2', b'"line": "a\\nb"'))
    with pytest.raises(UserError, match=r"line 2: it is numbered 'a\\nb'"):
        account_for(path)
