"""Pieces one after another: the scores of the whole at once, and `transformers`' texts."""

import mxnet as mx
import numpy as np
import pytest
from golden.make_gpt2_logits import BEAMS, GOLDEN, NEW, SHAPES, STOP, pieces_of, prompts_of
from support.gpt2 import scorer_of, write_folder

from edp_mx.tasks.causal_lm.decoding import Decoding, continuations


@pytest.mark.parametrize("case", ["tiny", "odd"])
def test_the_scores_of_steps_are_those_of_the_whole(case, tmp_path):
    scorer = scorer_of(write_folder(tmp_path, case))
    pieces = mx.nd.array(pieces_of(case), dtype="int32")  # (2, P)
    with np.load(GOLDEN) as golden:
        wanted = golden[f"{case}_logits"]
    past, at = None, 0
    for size in (1, 4, 1, 1, 3):
        scores, past = scorer.step(pieces[:, at : at + size], past)
        at += size
        np.testing.assert_allclose(scores.asnumpy(), wanted[:, at - 1], atol=1e-4)


@pytest.mark.parametrize("search, beams", [("greedy", 1), ("beams", BEAMS)])
@pytest.mark.parametrize("case", SHAPES)
def test_texts_are_those_of_transformers(case, search, beams, tmp_path):
    scorer = scorer_of(write_folder(tmp_path, case))
    found = continuations(
        scorer.step, prompts_of(case), Decoding(max_pieces=NEW, beams=beams), end=STOP, room=NEW
    )
    with np.load(GOLDEN) as golden:
        wanted = golden[f"{case}_{search}"].tolist()
    for row, text in zip(wanted, found):
        assert text == (row[: row.index(STOP)] if STOP in row else row)
