"""Fields that declare their bounds refuse what is outside them, however they are made."""

import math
from dataclasses import dataclass, fields, replace
from typing import Optional, Tuple

import pytest
from support.refusals import one_sentence

from edp_mx.data.config import DataConfig, SplitConfig
from edp_mx.data.embeddings import EmbeddingsConfig
from edp_mx.data.labels import LabelsConfig
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.vocabulary import VocabularyConfig
from edp_mx.dp.accounting.config import NoiseConfig, PrivacyConfig, ScaleRelease
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig
from edp_mx.models.clc import CLCConfig
from edp_mx.runtime.settings import Settings, setting
from edp_mx.training.config import Average, Checkpoints, LearningRates, Schedule, TrainingConfig


@dataclass(frozen=True)
class Made(Settings):
    count: int = setting(1, at_least=1)
    share: float = setting(0.5, above=0, below=1)
    part: Optional[float] = setting(None, above=0, at_most=1)
    kind: str = setting("a", one_of=("a", "b"))
    names: Tuple[str, ...] = setting((), one_of=("x", "y"))
    free: float = 0.0


@pytest.mark.parametrize(
    "values",
    [{}, {"count": 10**9}, {"share": 1e-300}, {"part": 1.0}, {"part": None}, {"kind": "b"},
     {"names": ("y", "x")}, {"free": float("nan")}],
)  # fmt: skip
def test_what_lies_within_the_bounds_is_kept(values):
    made = Made(**values)
    assert all(repr(getattr(made, key)) == repr(value) for key, value in values.items())


@pytest.mark.parametrize(
    "key, value, message",
    [
        ("count", 0, "count must be at least 1, not 0"),
        ("share", 0.0, "share must be above 0 and below 1, not 0.0"),
        ("share", 1.0, "share must be above 0 and below 1, not 1.0"),
        ("share", float("nan"), "share must be finite, above 0 and below 1, not nan"),
        ("count", float("inf"), "count must be finite and at least 1, not inf"),
        ("part", 1.5, "part must be above 0 and at most 1, not 1.5"),
        ("kind", "c", "kind must be one of a, b, not 'c'"),
        ("names", ("x", "z"), "names must be one of x, y, not 'z'"),
    ],
)
def test_what_lies_outside_is_refused_with_key_bound_and_value(key, value, message):
    for make in (lambda: Made(**{key: value}), lambda: replace(Made(), **{key: value})):
        with pytest.raises(UserError) as error:
            make()
        assert str(error.value) == message


# For every class of settings, impossible values of every key that has bounds of its own.
IMPOSSIBLE = {
    DataConfig: {"layout": "xml", "tokenizer": "pieces", "split_seed": -1, "size": 0,
                 "max_tokens": 0, "max_characters": 0, "max_pieces": 2},
    ColumnsConfig: {"unbalanced": "ignore"},
    SplitConfig: {"train": 1.0, "validation": 0.0},
    VocabularyConfig: {"source": "test", "min_count": 0, "max_words": 0},
    LabelsConfig: {"source": "embeddings"},
    EmbeddingsConfig: {"dimension": 0},
    CLCConfig: {"family": "bert", "hidden_size": 0, "num_layers": 0, "character_filters": -1,
                "character_dimension": 0, "character_width": 0, "dropout": 1.0,
                "intent_pooling": "median", "trained": "words", "heads": "mine",
                "intents": "infilling", "intent_weight": 0.0, "slot_moves": "all"},
    BERTConfig: {"family": "clc", "num_layers": 0, "num_heads": 0, "hidden_size": 0,
                 "intermediate_size": 0, "max_positions": 2, "activation": "swish",
                 "layer_norm_epsilon": 0.0, "dropout": -0.1, "frozen_layers": -1,
                 "trained": "words", "heads": "mine", "lora_rank": 0, "lora_alpha": 0.0,
                 "prefix_length": 0, "rgp_rank": 0, "features": "first", "token_layer": 0,
                 "intents": "asked",
                 "intent_weight": -1.0, "slot_moves": "iob"},
    PrivacyConfig: {"mechanism": "magic", "max_utterances_per_user": 0,
                    "micro_batches_per_worker": 0, "variant": "other", "clipping": "hook",
                    "chunk_size": 0, "noise_multiplier": -1.0, "max_grad_norm": 0.0,
                    "clip_rule": "mine", "layer_scales": "twos", "layer_scales_unit": "one",
                    "sampler": "poison", "adjacency": "near",
                    "target_epsilon": 0.0, "max_epsilon": math.inf, "corpus_budget": 0.0,
                    "assume_public": ("weather",),
                    "delta": 1.0, "delta_mode": "mine"},
    NoiseConfig: {"gaussian": "discrete"},
    ScaleRelease: {"noise_multiplier": math.inf, "clip": math.nan, "micro_batches": 0},
    TrainingConfig: {"epochs": 0, "steps_per_epoch": 0, "batch_size": 0, "optimizer": "lamb",
                     "loss_factor": 0.0, "learning_rate": 0.0, "weight_decay": -1e-5,
                     "seed": -1, "checkpoint": "first", "early_stop_patience": -1,
                     "length_buckets": -1, "evaluation_batch_size": 0, "tracking": "paper",
                     "watchdog_seconds": 0.0},
    Average: {"kind": "mean", "decay": 1.0},
    Checkpoints: {"every_steps": -1, "every_minutes": -0.5},
    LearningRates: {"heads": math.inf},
    Schedule: {"kind": "cubic", "warmup_fraction": 1.0},
}  # fmt: skip


@pytest.mark.parametrize("kind", IMPOSSIBLE, ids=lambda kind: kind.__name__)
def test_impossible_values_are_refused_by_name(kind):
    bounded = {field.name for field in fields(kind) if "bounds" in field.metadata}
    assert bounded == IMPOSSIBLE[kind].keys()
    for key, value in IMPOSSIBLE[kind].items():
        one_sentence(f"^{key} must be .*not ", kind, **{key: value})


@pytest.mark.parametrize("kind", IMPOSSIBLE, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("large", [10**12, 10**400], ids=["a slip", "400 digits"])
def test_no_number_is_without_a_limit(kind, large):
    for field in fields(kind):
        bounds, _ = field.metadata.get("bounds", ((), ()))
        if bounds and field.type in ("int", "Optional[int]"):
            one_sentence(f"^{field.name} must be .*at most", kind, **{field.name: large})


@pytest.mark.parametrize(
    "kind, settings, message",
    [
        (VocabularyConfig, {"source": "file"}, r"^path must name the list"),
        (VocabularyConfig, {"path": "a"}, r"^path must be left out"),
        (LabelsConfig, {"source": "file"}, r"^path must name the list"),
        (EmbeddingsConfig, {"path": "vectors.npy"}, "path must end in .vec"),
        (DataConfig, {"vocabulary": VocabularyConfig(source="embeddings")},
         r"embeddings\.path must be set"),
        (DataConfig, {"path": "mine", "labels": LabelsConfig("file", "mine/labels.json")},
         r"labels\.path must not be mine/labels\.json, because that shares files with the corpus"),
        (DataConfig, {"path": "mine/all.jsonl", "vocabulary": VocabularyConfig("sample", "mine")},
         r"vocabulary\.path must not be mine, because that shares files with the corpus"),
        (CLCConfig, {"character_width": 2}, "character_width must be odd, not 2"),
        (BERTConfig, {"hidden_size": 313}, "hidden_size must be a multiple of the 12 heads"),
        (BERTConfig, {"frozen_layers": 5}, r"frozen_layers must be at most 4 \(num_layers\)"),
    ],
)  # fmt: skip
def test_keys_that_depend_on_each_other(kind, settings, message):
    one_sentence(message, kind, **settings)
