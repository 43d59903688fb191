"""Who is a member and who is not: no text on both sides, as many of each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.attacks.members import choose, text_of
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

SLOTS, INTENTS = ("O", "B-x"), ("a", "b")


def utterance(text, id="", intent="a", tag="O"):
    tokens = tuple(text.split())
    return Utterance(tokens, (tag,) * len(tokens), intent, id=id)


def part(name, texts, intents="a"):
    return [utterance(t, f"{name}/{i}", intents[i % len(intents)]) for i, t in enumerate(texts)]


def chosen(train, test, validation=(), **options):
    options = {"seed": 0, "slots": SLOTS, "intents": INTENTS, **options}
    return choose(train, test, validation, **options)


WORDS = st.lists(st.sampled_from(["a", "A", "b c", "B C", "d", "e", "f g", "h"]), max_size=9)


@given(WORDS, WORDS, WORDS, st.integers(0, 3), st.booleans())
def test_no_text_is_on_two_sides_or_twice_on_one(train, test, validation, size, is_balanced):
    parts = [part(name, texts, "ab") for name, texts in
             (("train", train), ("test", test), ("validation", validation))]  # fmt: skip
    try:
        found = chosen(*parts, size=size, is_balanced=is_balanced)
    except UserError:
        return
    sides = [found.members, found.non_members, found.reference]
    texts = [text_of(u) for side in sides for u in side]
    assert len(set(texts)) == len(texts)
    assert len(found.members) == len(found.non_members) > 0
    assert not size or len(found.members) <= size
    train_texts, test_texts = ({text_of(u) for u in one} for one in parts[:2])
    assert {text_of(u) for u in found.members} <= train_texts - test_texts
    assert {text_of(u) for u in found.non_members} <= test_texts - train_texts
    assert not {text_of(u) for u in found.reference} & train_texts
    if is_balanced:
        for intent in INTENTS:
            counts = [sum(u.intent == intent for u in side) for side in sides[:2]]
            assert counts[0] == counts[1]


def test_what_is_left_out_is_told():
    train = part("train", ["a", "A", "b", "both", "c", "d"])
    test = part("test", ["e", "both", "f", "g"])
    test += [utterance("h", "t/1", intent="new"), utterance("i", "t/2", tag="B-new")]
    found = chosen(train, test)
    assert found.left_out == (
        "1 repeats of others in their part; 2 in two parts; 2 with a label that the model does not "
        "know"
    )
    assert len(found.members) == 3 and {u.tokens[0] for u in found.non_members} == {"e", "f", "g"}
    assert found.reference == []


def test_those_who_are_not_drawn_are_the_reference():
    train, test = part("train", ["a", "b"]), part("test", ["c", "d", "e", "f"])
    found = chosen(train, test, part("validation", ["g", "a"]))
    assert len(found.members) == 1  # "a" is in the validation part too
    spoken = {u.tokens[0] for u in found.non_members + found.reference}
    assert spoken == {"c", "d", "e", "f", "g"}


def test_the_draw_depends_on_the_seed_and_on_nothing_else():
    train = part("train", [f"w{i}" for i in range(30)])
    test = part("test", [f"v{i}" for i in range(90)])
    draws = [[u.id for u in chosen(train, test, seed=s).non_members] for s in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    places = np.array([int(name.split("/")[1]) for name in draws[0]])
    assert len(places) == 30 and places.max() > 40  # not only the first ones


def test_nobody_left_is_said():
    with pytest.raises(UserError, match="no members and non-members are left to compare .0 and 1"):
        chosen(part("train", ["a"]), part("test", ["A", "b"]))
