"""Who is a member: no text on both sides; and what is written of scores is read back."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.membership import made_scores
from support.refusals import one_sentence

from edp_mx.attacks.membership.members import choose, unknown_words
from edp_mx.attacks.membership.scores import MembershipScores, hash_of
from edp_mx.data.strata import folded_text
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError


def test_what_is_written_is_read_back(generator, tmp_path):
    scores = made_scores(generator, 6, gap=1.0, reference=3)
    scores.write(tmp_path / "scores.npz")
    again = MembershipScores.read(tmp_path / "scores.npz", weights="a" * 64)
    for one, other in zip(scores.signals, again.signals):
        np.testing.assert_array_equal(one, other)
    assert (again.ids, again.intents, again.origin) == (scores.ids, scores.intents, scores.origin)
    assert again.labels.tolist() == [True] * 6 + [False] * 6
    assert again.is_reference.sum() == 3 and again.unknown_words is None
    counted = replace(scores, unknown_words=np.arange(15))
    counted.write(tmp_path / "scores.npz")
    again = MembershipScores.read(tmp_path / "scores.npz")
    np.testing.assert_array_equal(again.unknown_words, np.arange(15))


def test_other_weights_are_refused(generator, tmp_path):
    made_scores(generator, 4, gap=1.0).write(tmp_path / "scores.npz")
    with pytest.raises(UserError, match="scores of other weights .aaaaaaaaaaaa….*without --from"):
        MembershipScores.read(tmp_path / "scores.npz", weights="b" * 64)


def test_a_torn_or_missing_file_is_said(generator, tmp_path):
    path = tmp_path / "scores.npz"
    one_sentence("there is no .*without --from-scores first", MembershipScores.read, path)
    made_scores(generator, 40, gap=1.0).write(path)
    whole = path.read_bytes()
    for end in (0, 10, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:end])
        one_sentence("is torn|holds no scores", MembershipScores.read, path)
    path.write_bytes(whole[:2000] + bytes(100) + whole[2100:])
    one_sentence("is torn or not a file of scores", MembershipScores.read, path)
    np.savez(path, other=np.zeros(3))
    one_sentence("holds no scores of this version", MembershipScores.read, path)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"is_member": np.ones(7, bool)}, "is_member is not one truth value"),
        ({"is_member": np.ones(10)}, "is_member is not one truth value"),
        ({"ids": ("u/0",) * 10}, "an id occurs twice"),
        ({"is_reference": np.ones(10, bool)}, "a reference utterance is a member"),
        ({"intents": ("play",)}, "ids and intents"),
        ({"unknown_words": np.zeros(7, np.int64)}, "unknown_words is not one integer"),
        ({"unknown_words": np.zeros(10)}, "unknown_words is not one integer"),
        ({"signals": {"loss": np.zeros(9)}}, "loss has the shape"),
    ],
)
def test_arrays_that_do_not_go_together_are_refused(generator, tmp_path, change, message):
    scores = made_scores(generator, 5, gap=1.0)
    if "signals" in change:
        change = {"signals": scores.signals._replace(**change["signals"])}
    scores = replace(scores, **change)
    scores.write(tmp_path / "scores.npz")
    one_sentence(message, MembershipScores.read, tmp_path / "scores.npz")


def test_the_hash_is_of_the_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert hash_of(tmp_path / "a").startswith("ba7816bf8f01cfea")  # FIPS 180-2, appendix B.1
    one_sentence("cannot read", hash_of, tmp_path / "b")


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
    texts = [folded_text(u) for side in sides for u in side]
    assert len(set(texts)) == len(texts)
    assert len(found.members) == len(found.non_members) > 0
    assert not size or len(found.members) <= size
    train_texts, test_texts = ({folded_text(u) for u in one} for one in parts[:2])
    assert {folded_text(u) for u in found.members} <= train_texts - test_texts
    assert {folded_text(u) for u in found.non_members} <= test_texts - train_texts
    assert not {folded_text(u) for u in found.reference} & train_texts
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
        "1 repeats of others in their part; 2 in two parts; 2 with a label that no other training "
        "utterance has"
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


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 16, 17])
def test_a_balanced_draw_has_exactly_the_size_that_was_asked_for(size):
    """Each intent has its share, within one utterance, however small the shares are."""
    counts = {"a": 1, "b": 2, "c": 3, "d": 10}
    intents = "".join(name * count for name, count in counts.items())
    train, test = (part(name, [f"{name}{i}" for i in range(16)], intents)
                   for name in ("train", "test"))  # fmt: skip
    found = chosen(train, test, intents=tuple(counts), is_balanced=True, size=size,
                   has_public_labels=True)  # fmt: skip
    assert len(found.members) == len(found.non_members) == min(size, 16)
    for side in (found.members, found.non_members):
        drawn = Counter(u.intent for u in side)
        for name, count in counts.items():
            assert abs(drawn[name] - count * min(size, 16) / 16) < 1


def test_sides_that_differ_in_their_labels_are_warned_of(caplog):
    """An attack would tell labels apart; by chance alone sides differ, too, and nothing is said."""
    train, more = (part(n, [f"{n}{i}" for i in range(800)], "abbb") for n in ("train", "test"))
    chosen(train, more)
    few = part("test", [f"v{i}" for i in range(40)], "aabb")
    chosen(train, few)
    chosen(train, part("test", [f"v{i}" for i in range(800)], "aabb"), is_balanced=True)
    assert not caplog.records
    chosen(train, part("test", [f"v{i}" for i in range(800)], "aabb"))
    lone, others = (
        part(n, [f"{n}{i}" for i in range(20)], i) for n, i in (("train", "a"), ("test", "b"))
    )
    chosen(lone, others, intents=("a", "b"))
    warned, of_few = (record.getMessage() for record in caplog.records)
    assert of_few.startswith("100.0 % of the members and 0.0 % of the others have the label 'a': ")
    assert warned.startswith("25.0 % of the members and 50.0 % of the others have the label 'a': ")


def test_nobody_left_is_said():
    with pytest.raises(UserError, match="left to compare: 0 different members and 1 non"):
        chosen(part("train", ["a"]), part("test", ["A", "b"]))


def test_a_member_that_alone_taught_a_label_is_left_out_as_a_stranger_with_it_would_be():
    train = part("train", ["a", "b", "c", "D"])
    train += [utterance("lone", "t/1", intent="rare"), utterance("tag", "t/2", tag="B-rare")]
    train += [utterance("twice", "t/3", intent="b"), utterance("TWICE", "t/4", intent="b")]
    test = part("test", [f"v{i}" for i in range(9)])
    known = {"slots": (*SLOTS, "B-rare"), "intents": (*INTENTS, "rare")}
    found = chosen(train, test, **known)
    assert {u.tokens[0] for u in found.members} == {"a", "b", "c", "D"}  # repeats are one text
    assert "3 with a label that no other training utterance has" in found.left_out
    public = chosen(train, test, has_public_labels=True, **known)
    assert len(public.members) == 7


def test_unknown_words_are_counted_where_the_words_came_from_the_training_part():
    vocabulary = Vocabulary.build(part("train", ["a b", "b c"]))
    found = unknown_words(part("test", ["a B", "x b y", "c z"]), vocabulary)
    assert found.tolist() == [0, 2, 1] and found.dtype == np.int64
    assert unknown_words(part("test", ["x"]), replace(vocabulary, word_source="file")) is None
