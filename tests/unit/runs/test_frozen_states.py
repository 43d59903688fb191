"""Frozen layers whose outputs are stored: the same training as through the whole network."""

import math
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice, product

import numpy as np
import pytest
from mxnet import autograd

from edp_mx.attacks.training import to_train_on, train_prepared
from edp_mx.config import load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.data.utterance import Utterance
from edp_mx.dp.weights import weights_of
from edp_mx.models.encoder import FrozenPart
from edp_mx.runs import frozen_states
from edp_mx.runs.prepare import Prepared, prepare_corpus
from edp_mx.runtime.distributed import start

SETTINGS = """
task: {task}
data:
  {{corpus: communication, size: 80, vocabulary: {{source: sample}}, labels: {{source: sample}}}}
privacy: {{mechanism: dp_sgd, noise_multiplier: 0.5, insecure_fixed_seed: 1, chunk_size: 8}}
training: {{epochs: 2, batch_size: 9, learning_rate: 0.02}}
model: {model}
"""
BERT = (
    "family: bert, num_layers: 3, num_heads: 2, hidden_size: 8, intermediate_size: 12, dropout: 0"
)
GPT2 = BERT.replace("bert", "gpt2")
MODELS = {
    "clc, heads": "{family: clc, hidden_size: 5, dropout: 0, trained: heads}",
    "bert, heads": f"{{{BERT}, trained: heads}}",
    "bert, heads on all layers": f"{{{BERT}, trained: heads, features: all_layers}}",
    "bert, heads on a mean": f"{{{BERT}, trained: heads, features: mean, token_layer: 2}}",
    "bert, top layer": f"{{{BERT}, is_embedding_trainable: false, frozen_layers: 2}}",
    "bert, prefixes of two layers": f"{{{BERT}, trained: prefix, frozen_layers: 1}}",
    "bert, carriers of the top layer": f"{{{BERT}, trained: rgp, frozen_layers: 2}}",
    "bert, carriers and a mean": f"{{{BERT}, trained: rgp, frozen_layers: 2, features: mean}}",
    "bert, adapters of the top layer": f"{{{BERT}, trained: lora, frozen_layers: 2}}",
    "bert, adapters and a mean": f"{{{BERT}, trained: lora, frozen_layers: 2, features: mean}}",
    "gpt2, heads": f"{{{GPT2}, trained: heads}}",
    "gpt2, top layer": f"{{{GPT2}, is_embedding_trainable: false, frozen_layers: 2}}",
    "gpt2, adapters of the top layer": f"{{{GPT2}, trained: lora, frozen_layers: 2}}",
    "lm, top layer": f"{{{GPT2}, is_embedding_trainable: false, frozen_layers: 2}}",
    "lm, last norm": f"{{{GPT2}, is_embedding_trainable: false, frozen_layers: 3}}",
    "lm, adapters of two layers": f"{{{GPT2}, trained: lora, frozen_layers: 1}}",
    "lm, prefixes of two layers": f"{{{GPT2}, trained: prefix, frozen_layers: 1}}",
    "lm, carriers of the top layer": f"{{{GPT2}, trained: rgp, frozen_layers: 2}}",
}


def prepared_for(folder, name, models) -> Prepared:
    task = "causal_lm" if name.startswith("lm") else "intent_slot"
    (folder / "run.yaml").write_text(SETTINGS.format(task=task, model=models[name]))
    config = load_config(folder / "run.yaml")
    found = prepare_corpus(load_corpus(config.data), config, start())
    object.__setattr__(found, "config", config)
    return found


@pytest.fixture(scope="module", params=MODELS)
def prepared(request, tmp_path_factory) -> Prepared:
    return prepared_for(tmp_path_factory.mktemp("frozen"), request.param, MODELS)


def test_losses_and_gradients_are_those_of_the_whole_model(prepared, tmp_path):
    above, rows = prepared.above_frozen(tmp_path), [7, 0, 3, 11]
    assert above.frozen is not None
    found = []
    for part in (prepared, above):
        with autograd.record():
            losses = part.model.loss(part.train.batch(rows))
        losses.backward()
        gradients = {
            name: p.grad().asnumpy()
            for name, p in part.model.collect_params().items()
            if p.grad_req != "null"
        }
        found.append((losses.asnumpy(), gradients))
    (whole_losses, whole), (losses, gradients) = found
    np.testing.assert_allclose(losses, whole_losses, rtol=1e-5)
    assert gradients.keys() == whole.keys()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, whole[name], rtol=1e-3, atol=1e-5, err_msg=name)


# Sizes at which products round differently at different places of a batch.
LARGER = {
    "clc": "{family: clc, trained: heads}",
    "bert": f"{{{BERT}, hidden_size: 96, intermediate_size: 200, trained: heads}}".replace(
        "hidden_size: 8, intermediate_size: 12, ", ""
    ),
    "bert, top layer": MODELS["bert, top layer"].replace("size: 8", "size: 312"),
    "lm, top layer": MODELS["lm, top layer"].replace("size: 8", "size: 312"),
}


@pytest.mark.parametrize("model", LARGER)
def test_the_bytes_of_an_utterances_states_depend_on_it_alone(model, tmp_path):
    prepared = prepared_for(tmp_path, model, LARGER).above_frozen(tmp_path)
    first, *rest = prepared.corpus.train[:24]
    alike = [each for each in rest if len(each.tokens) == len(first.tokens)][0]
    other = [each for each in rest if len(each.tokens) > len(first.tokens)][0]

    def stored(utterances):
        states = prepared.encode(utterances).states
        ends = states.starts + states.counts
        return [states.rows[a:b].tobytes() for a, b in zip(states.starts, ends)]

    found = stored([first, *rest])
    assert stored([alike, *rest])[1:] == found[1:]
    assert stored([other, *rest])[1:] == found[1:]
    assert stored(rest) == found[1:]
    assert stored(rest[::-1])[::-1] == found[1:]
    assert [stored([each])[0] for each in rest[:3]] == found[1:4]
    assert stored([*rest, first, first])[-2:] == [found[0]] * 2


def test_states_are_known_to_models_with_the_same_frozen_weights_alone(tmp_path):
    """As shadows of an attack are: each is trained on half of the texts."""
    config = prepared_for(tmp_path, "bert, heads", MODELS).config
    corpus, known, said = load_corpus(config.data), frozen_states.KnownStates(), []
    texts = corpus.train

    def stored(utterances, known, seed=0):
        seeded = replace(config, training=replace(config.training, seed=seed))
        part = to_train_on(corpus, utterances)
        found = prepare_corpus(part, seeded, start(), known=known)
        said.clear()
        states = found.above_frozen(tmp_path, said.append).train.states
        return [states.of(row).tobytes() for row in range(len(utterances))]

    def was_computed():
        return "computing the outputs of the frozen layers" in said

    plain, half = stored(texts, None), len(texts) // 2
    assert stored(texts[:half], known) == plain[:half] and was_computed()
    assert stored(texts[:half][::-1], known) == plain[:half][::-1] and not was_computed()
    assert stored(texts, known) == plain and was_computed()
    assert stored(texts[half - 3 :], known) == plain[half - 3 :] and not was_computed()
    assert stored(texts, known, seed=1) != plain and was_computed()  # other frozen weights


def test_places_at_which_products_round_alike_are_shared(tmp_path, monkeypatch):
    """The state of this part is 1 at the places 0 and 1 of 8, else 0, as products may round."""
    monkeypatch.setattr(
        frozen_states, "PLACES", 4
    )  # of 8, twice as many, since the texts are short
    prepared = prepared_for(tmp_path, "clc, heads", MODELS)
    words = map("".join, product("aeinorst", repeat=3))
    texts = [Utterance((word, "the"), ("O", "O"), "x") for word in islice(words, 200)]
    batches = []

    def states(batch):
        batches.append(batch)
        rows = np.zeros((8, 2, 1), np.float32)
        rows[:2] = 1
        return rows, batch.lengths

    def stored(utterances):
        found = frozen_states.with_states(prepared.encode(utterances), FrozenPart(states, None))
        return found.states.rows[found.states.starts, 0].tolist()

    whole = stored(texts)
    assert 25 < sum(whole) < 75  # a quarter, by chance
    groups = sum(whole) / 2, (len(texts) - sum(whole)) / 6
    assert len(batches) == 1 + math.ceil(max(groups))  # one asks which places are alike
    assert stored(texts[100::-1]) == whole[100::-1]
    assert [stored([text])[0] for text in texts[:9]] == whole[:9]


def test_stored_states_are_those_that_the_frozen_part_computes(prepared, tmp_path):
    above = prepared.above_frozen(tmp_path)
    for row in range(0, len(prepared.train), 7):
        states, (count,) = above.frozen.states(prepared.train.batch([row]))
        kept = above.train.states
        own = kept.rows[kept.starts[row] : kept.starts[row] + kept.counts[row]]
        np.testing.assert_allclose(own, states[0, :count], rtol=1e-4, atol=1e-5)


def test_training_ends_with_the_weights_of_training_the_whole(prepared, tmp_path, monkeypatch):
    before = weights_of(prepared.model)

    def trained():
        for name, parameter in prepared.model.collect_params().items():
            parameter.set_data(before[name])
        config = prepared.config
        train_prepared(prepared, config, start(), tmp_path / "run", lambda steps, *_: steps)
        return weights_of(prepared.model)

    stored = trained()
    monkeypatch.setattr(Prepared, "above_frozen", lambda self, *_: self)
    whole = trained()
    changed = [name for name in whole if (whole[name] != before[name]).any()]
    assert changed and not any(name in changed for name in ("bert_word_embed_embedding0_weight",))
    for name in whole:
        np.testing.assert_allclose(stored[name], whole[name], atol=2e-4, err_msg=name)


def test_nothing_is_stored_where_few_are_read(tmp_path, monkeypatch):
    prepared = prepared_for(tmp_path, "bert, heads", MODELS)
    monkeypatch.setattr(Prepared, "above_frozen", lambda self, *_: pytest.fail("stored"))
    assert len(prepared.train) == 36
    for steps, is_stored in ((1, False), (2, True)):  # of 9 utterances, in each of two epochs
        training = replace(prepared.config.training, steps_per_epoch=steps)
        privacy = replace(prepared.config.privacy, sampler="poisson")
        config = replace(prepared.config, training=training, privacy=privacy)
        with pytest.raises(pytest.fail.Exception) if is_stored else nullcontext():
            train_prepared(prepared, config, start(), tmp_path / "run", lambda steps, *_: steps)


def test_nothing_is_stored_where_all_is_trained(tmp_path):
    prepared = prepared_for(tmp_path, "clc", {"clc": "{family: clc, hidden_size: 4}"})
    assert prepared.above_frozen(tmp_path) is prepared
