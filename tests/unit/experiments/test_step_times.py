"""What the rows of Table 2 train on: a draw for a million, the pieces of the paper's BERT."""

import pytest
from support.commands import CONFIGS

from edp_mx.data.corpus import load_corpus
from experiments.tables.step_times import drawn_from, training_part, vocabulary_of
from experiments.tables.times import TimesRequest, times_cells


def config_of(corpus, family="clc", *overrides):
    asked = TimesRequest(CONFIGS, (corpus,), (family,), (1,), overrides=overrides)
    (cell,) = times_cells(asked)
    return cell.trials["sgd"].config


@pytest.mark.parametrize(
    "corpus, overrides, size, n",
    [
        ("health", (), 20_000, 450_000),
        ("video", ("data.size=100000", "data.split=80/10/10"), 20_000, 80_000),
        ("health", ("data.size=20000",), 20_000, 9_007),
        ("health", ("data.size=300",), 300, 9_007),
        ("atis", (), None, 9_007),  # which is read, and trained on whole
    ],
)
def test_a_draw_stands_for_a_larger_stand_in_alone(corpus, overrides, size, n):
    config = config_of(corpus, "clc", *overrides)
    assert drawn_from(config).data.size == size
    assert training_part(config, 9_007) == n  # 9,007 are trained on


def test_a_bert_has_as_many_pieces_as_the_paper_s_and_spells_as_before():
    config = config_of("health", "bert", "data.size=300")
    corpus = load_corpus(config.data)
    tokenizer = vocabulary_of(config, corpus).tokenizer
    assert len(tokenizer.pieces) == 30_522
    used = {
        piece for utterance in corpus.train for t in utterance.tokens for piece in tokenizer.ids(t)
    }
    assert len(used) > 50 and not any(tokenizer.pieces[i].startswith("[unused") for i in used)
    words = vocabulary_of(config_of("health", "clc", "data.size=300"), corpus)
    assert words.tokenizer is None and len(words.words) > 50
