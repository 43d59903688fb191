"""From records to gradients: what a record's clipped gradient may depend on, and the rest."""

import mxnet as mx
import numpy as np
import pytest
from support.examples import loop_clipping

from edp_mx.accounting.decay import Decay
from edp_mx.data.encoding import encode
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.models.clc import CLCConfig, CLCEncoder
from edp_mx.models.intent_slot import build_model
from edp_mx.privacy.clipping import PerExampleClipping
from edp_mx.privacy.dp_sgd import DPSGD
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.noise import NoiseStream
from edp_mx.training.gradient import ClippedGradient, MeanGradient, gradient_for

KEY, OTHER = bytes(32), bytes(31) + b"\1"
PLACE = (0, 0, 0, 0)


class Chunks(PerExampleClipping):
    """Keeps the losses of each chunk, made twice as two passes would make them."""

    def _add(self, losses):
        with mx.autograd.record():
            first, second = losses(), losses()
        self.seen.append(first.asnumpy())
        assert (first.asnumpy() == second.asnumpy()).all()
        return first.sum().detach()


@pytest.fixture(scope="module")
def parts():
    """A model with dropout, a corpus sorted by length, and the flat gradients."""
    utterances = sorted(make_utterances("communication", size=120, seed=1),
                        key=lambda utterance: len(utterance.tokens))  # fmt: skip
    vocabulary = Vocabulary.build(utterances)
    encoder = CLCEncoder(
        CLCConfig(hidden_size=8, character_filters=4, dropout=0.5),
        num_words=len(vocabulary.words),
        num_characters=len(vocabulary.characters), word_dimension=8, prefix="clc_",
    )  # fmt: skip
    model = build_model(encoder, num_slots=len(vocabulary.slots),
                        num_intents=len(vocabulary.intents), seed=0, context=mx.cpu())  # fmt: skip
    return model, encode(utterances, vocabulary), FlatGradients(layers_of(model))


def clipped_gradient(parts, *, size=1.0, key=KEY, c=1e9):
    model, corpus, flat = parts
    clipping = loop_clipping(flat, scales=(1.0,) * len(flat.layers), max_grad_norm=c)
    return ClippedGradient(model, corpus, clipping, micro_batch_size=size, mask_key=key), clipping


def taken(parts, indices, *, place=PLACE, **settings):
    gradient, clipping = clipped_gradient(parts, **settings)
    gradient(gradient.batches(np.array(indices)), place=place)
    return clipping.take().copy()


def test_a_record_adds_the_same_whoever_else_is_drawn(parts):
    """Else, with masks that move on, one record could change the gradients of all after it."""
    alone = taken(parts, [7], c=0.1)
    for others in ([0, 1], [110, 119], [3, 50, 90]):
        drawn = sorted([7, *others])
        with_it, without = taken(parts, drawn, c=0.1), taken(parts, others, c=0.1)
        np.testing.assert_allclose(with_it - without, alone, atol=1e-7)


def test_masks_differ_by_record_step_epoch_worker_seed_and_key_and_repeat_otherwise(parts):
    first = taken(parts, [7])
    assert (first == taken(parts, [7])).all()
    for place in ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)):
        assert abs(first - taken(parts, [7], place=place)).max() > 1e-4
    assert abs(first - taken(parts, [7], key=OTHER)).max() > 1e-4


def test_the_loss_is_divided_by_the_public_size_and_the_sum_is_not(parts):
    one, _ = clipped_gradient(parts)
    more, _ = clipped_gradient(parts, size=2.5)
    indices = np.array([3, 9, 40])
    whole = float(one(one.batches(indices), place=PLACE).asscalar())
    assert float(more(more.batches(indices), place=PLACE).asscalar()) == pytest.approx(whole / 2.5)
    assert (taken(parts, indices) == taken(parts, indices, size=2.5)).all()


@pytest.mark.parametrize("drawn, sizes", [(0, []), (4, [4]), (5, [4, 1]), (9, [4, 4, 1])])
def test_records_come_in_chunks_of_the_clippings_size(parts, drawn, sizes):
    model, corpus, flat = parts
    clipping = Chunks(flat=flat, max_grad_norm=1.0, layer_scales=(1.0,) * len(flat.layers),
                      chunk_size=4)  # fmt: skip
    clipping.seen = []
    gradient = ClippedGradient(model, corpus, clipping, micro_batch_size=3.0, mask_key=KEY)
    total = gradient(gradient.batches(np.arange(drawn) * 2), place=PLACE)
    assert [len(losses) for losses in clipping.seen] == sizes
    assert float(total.asscalar()) == pytest.approx(
        sum(losses.astype(np.float64).sum() for losses in clipping.seen) / 3, rel=1e-5, abs=1e-9
    )


def test_similar_lengths_share_a_chunk_and_no_record_is_lost(parts, generator):
    model, corpus, flat = parts
    seen = []

    class Spied:
        def loss(self, batch):
            seen.append(batch)
            return model.loss(batch)

    clipping = Chunks(flat=flat, max_grad_norm=1.0, layer_scales=(1.0,) * len(flat.layers),
                      chunk_size=8)  # fmt: skip
    clipping.seen = []
    drawn = generator.permutation(len(corpus))[:30]
    gradient = ClippedGradient(Spied(), corpus, clipping, micro_batch_size=1.0, mask_key=KEY)
    gradient(gradient.batches(drawn), place=PLACE)
    batches = seen[::2]  # `Chunks` makes each twice
    assert sorted(np.concatenate([batch.indices for batch in batches])) == sorted(drawn)
    lengths = np.concatenate([batch.lengths for batch in batches])
    assert (np.diff(lengths) >= 0).all() and lengths[0] < lengths[-1]


def test_without_masks_the_sum_of_unclipped_records_is_the_mean_gradient_times_its_size():
    """Two ways to the same: one backward pass a record, and one for all."""
    from support.models import part, random_batch, tiny

    model = tiny("clc")
    utterances = random_batch(np.random.default_rng(3), [3, 5, 2, 4])
    flat = FlatGradients(layers_of(model))

    class Corpus:
        lengths = utterances.lengths

        def batch(self, indices):
            return part(utterances, np.asarray(indices))

    mean = MeanGradient(model, Corpus(), micro_batch_size=2.5)
    loss = mean(mean.batches(np.arange(4)), place=PLACE)
    expected = flat.gradients().copy() * 2.5
    clipped, clipping = clipped_gradient((model, Corpus(), flat), size=2.5)
    assert float(clipped(clipped.batches(np.arange(4)), place=PLACE).asscalar()) == pytest.approx(
        float(loss.asscalar()), rel=1e-5
    )
    np.testing.assert_allclose(clipping.take(), expected, rtol=1e-4, atol=1e-5)


def test_the_mechanism_says_which_gradient_is_made(parts):
    from support.examples import release_with

    model, corpus, flat = parts
    assert isinstance(gradient_for(None, model, corpus, micro_batch_size=2), MeanGradient)
    scales = (1.0,) * len(flat.layers)
    mechanism = DPSGD(
        release=release_with(layer_scales=scales), noise_multiplier=1.0, decay=Decay(), flat=flat,
        noise=NoiseStream.insecure(seed=0, rank=0), clipping=loop_clipping(flat, scales=scales),
    )  # fmt: skip
    gradient = gradient_for(mechanism, model, corpus, micro_batch_size=2)
    assert isinstance(gradient, ClippedGradient)
    gradient(gradient.batches(np.array([1])), place=PLACE)
    assert mechanism.clipping.take().any()
