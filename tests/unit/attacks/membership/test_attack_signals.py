"""The signals of a model: the same by batch and one by one, and those of its own loss."""

from dataclasses import replace

import mxnet as mx
import numpy as np
import pytest

from edp_mx.attacks.membership.run_scores import Selection, compute_signals
from edp_mx.config import ExperimentConfig
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.models.clc import CLCConfig
from edp_mx.runs.build import encode_part, model_for

TINY = CLCConfig(hidden_size=8, character_filters=4, character_dimension=4)


def plain(iterable, *_):
    return iterable


@pytest.fixture(scope="module")
def parts():
    """A model that never saw anything, and encoded utterances."""
    config = ExperimentConfig(model=TINY)
    config = replace(
        config,
        data=replace(config.data, embeddings=replace(config.data.embeddings, dimension=8)),
    )
    utterances = list(make_utterances("communication", size=3000, seed=4))
    vocabulary = Vocabulary.build(utterances)
    model = model_for(config, vocabulary, mx.cpu())
    generator = np.random.default_rng(0)
    for parameter in model.collect_params().values():  # surer than drawn weights
        parameter.set_data(
            parameter.data() + mx.nd.array(generator.normal(0, 0.3, parameter.shape))
        )
    return config, model, vocabulary, utterances


def test_batches_and_single_utterances_agree(parts):
    config, model, vocabulary, utterances = parts
    encoded = encode_part(config, utterances[:23], vocabulary, "some")
    whole = compute_signals(model, encoded, batch_size=7, progress=plain)
    single = compute_signals(model, encoded, batch_size=1, progress=plain)
    for name, one in whole._asdict().items():
        np.testing.assert_allclose(one, getattr(single, name), rtol=2e-4, atol=2e-5, err_msg=name)


def test_the_loss_is_the_training_loss_without_dropout(parts):
    config, model, vocabulary, utterances = parts
    encoded = encode_part(config, utterances[:23], vocabulary, "some")
    signals = compute_signals(model, encoded, batch_size=7, progress=plain)
    loss = model.loss(encoded.batch(range(23))).asnumpy()
    np.testing.assert_allclose(signals.loss, loss, rtol=1e-5)


def test_nobody_and_bad_settings_are_refused(parts):
    config, model, vocabulary, _ = parts
    with pytest.raises(UserError, match="no utterances"):
        compute_signals(model, encode_part(config, [], vocabulary, "no"), batch_size=5,
                        progress=plain)  # fmt: skip
    with pytest.raises(UserError, match="--seed and --size"):
        Selection(seed=-1)
