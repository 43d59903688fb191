"""`scores.npz`: what is written is read back, and nothing else is."""

from dataclasses import replace

import numpy as np
import pytest
from support.membership import made_scores

from edp_mx.attacks.membership.scores import MembershipScores, hash_of
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
    with pytest.raises(UserError, match="there is no .*without --from-scores first"):
        MembershipScores.read(path)
    made_scores(generator, 40, gap=1.0).write(path)
    whole = path.read_bytes()
    for end in (0, 10, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:end])
        with pytest.raises(UserError, match="is torn|holds no scores"):
            MembershipScores.read(path)
    path.write_bytes(whole[:2000] + bytes(100) + whole[2100:])
    with pytest.raises(UserError, match="is torn or not a file of scores"):
        MembershipScores.read(path)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(UserError, match="holds no scores of this version"):
        MembershipScores.read(path)


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
    with pytest.raises(UserError, match=message):
        MembershipScores.read(tmp_path / "scores.npz")


def test_the_hash_is_of_the_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert hash_of(tmp_path / "a").startswith("ba7816bf8f01cfea")  # FIPS 180-2, appendix B.1
    with pytest.raises(UserError, match="cannot read"):
        hash_of(tmp_path / "b")
