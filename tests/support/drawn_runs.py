"""Finished runs of both families with drawn weights, without training one."""

import json

import mxnet as mx
import numpy as np
from tokenizers import ByteLevelBPETokenizer

from edp_mx.config import dump_config, load_config
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.tokenizer import load_tokenizer
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import WordPiece
from edp_mx.data.wordpiece_learning import learn_pieces
from edp_mx.dp.weights import save_weights
from edp_mx.runs.build import model_for
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.trained_run import load_run
from edp_mx.tasks.registry import TASKS

# Limits so low that some utterances are cut.
DATA = "{corpus: communication, max_tokens: 9, max_pieces: 26, max_characters: 6}"
CONFIG = """\
name: drawn
task: {task}
data: {data}
model: {model}
privacy: {{mechanism: none}}
training: {{epochs: 1}}
"""
MODELS = {
    "clc": "{family: clc, hidden_size: 6, character_filters: 5, character_dimension: 4}",
    "bert": "{family: bert, num_layers: 3, num_heads: 2, hidden_size: 12, intermediate_size: 20, "
    "max_positions: 40}",
}
NO_BOUND = {"epsilon": None, "log10_epsilon": None, "reason": "no privacy mechanism ran",
            "conditions": []}  # fmt: skip
PRIVACY = {"mechanism": "none", "unit": "utterance", "delta": 1e-5, "num_examples": 100, "steps": 9,
           "epochs": 1, "warnings": [], "not_covered": [],
           **dict.fromkeys(("as_published", "holds", "holds_if"), NO_BOUND)}  # fmt: skip
UTTERANCES = [*make_utterances("communication", size=300, seed=4)]
LINES = [" ".join(utterance.tokens) for utterance in UTTERANCES]


def drawn_run(folder, family, *settings, task="intent_slot", tokenizer=None, spread=0.6):
    """A run that counts as finished; its model, loaded.

    Args:
        settings: overrides, such as "model.trained=lora".
        tokenizer: of a BERT; by default word pieces of the utterances.
        spread: of the weights; 0.6 lets attention and gates choose.
    """
    folder.mkdir()
    source = folder.parent / f"{folder.name}.yaml"
    source.write_text(CONFIG.format(task=task, data=DATA, model=MODELS[family]))
    config = load_config(source, settings)
    vocabulary = Vocabulary.build(UTTERANCES[:200])  # of the others, some words are unknown
    if family == "bert":
        pieces = tokenizer or WordPiece(learn_pieces(LINES, size=150))
        vocabulary = Vocabulary.of_pieces(
            pieces, UTTERANCES, word_source="train", template=config.model.written_around
        )
    run = RunDirectory(folder)
    run.config.write_text(dump_config(config))
    run.write("vocabulary", vocabulary.to_json())
    model = model_for(config, vocabulary, mx.cpu())
    generator = np.random.default_rng(7)
    for name, parameter in model.collect_params().items():
        values = generator.normal(name.endswith("gamma"), spread, parameter.shape)
        parameter.set_data(mx.nd.array(values))
    save_weights(model, run.weights)
    shares = {metric.key: 0.9 for metric in TASKS[task].metrics}
    run.write("results", {"test": shares, "baseline": None, "training_seconds": 1.0})
    run.write("privacy", PRIVACY)
    return load_run(folder)


def differences(expected, found):
    """Between answers as `predict --json` gives them, the largest of all confidences.

    What is no number must be equal, and the keys too.
    """
    if isinstance(expected, float):
        return abs(expected - found)
    if isinstance(expected, dict):
        assert expected.keys() == found.keys()
        return max((differences(expected[key], found[key]) for key in expected), default=0.0)
    if isinstance(expected, list):
        assert len(expected) == len(found)
        return max(map(differences, expected, found), default=0.0)
    assert expected == found
    return 0.0


def predicted(trained, texts):
    """The answers of a run to texts, as JSON has them."""
    answers = trained.predict([trained.tokens_of(text) for text in texts])
    return [json.loads(json.dumps(answer.to_dict())) for answer in answers]


def confidence_of(answer):
    """Of the likeliest label."""
    return answer.get("intent_confidence", answer.get("confidence"))


def threshold_of(trained):
    """A setting that refuses half of the lines."""
    return f"threshold={np.median([confidence_of(each) for each in predicted(trained, LINES)])}"


def byte_level_bpe(folder):
    """Byte-level pieces of the utterances, as the library learns and writes them."""
    folder.mkdir()
    library = ByteLevelBPETokenizer(add_prefix_space=True)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    library.train_from_iterator(LINES, vocab_size=400, special_tokens=special)
    library.save(str(folder / "tokenizer.json"))
    return load_tokenizer(folder)
