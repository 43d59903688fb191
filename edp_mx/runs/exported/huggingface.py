"""A run as a folder for transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Mapping

from mxnet.gluon import nn

from edp_mx.data.origin import ORIGIN, write_origin
from edp_mx.data.wordpiece import WordPiece
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig
from edp_mx.models.registry import FAMILIES
from edp_mx.runs.ancestors import origin_of
from edp_mx.runs.exported.exported_model import ABOUT
from edp_mx.runs.exported.scripts import about, require_labels, write_scripts
from edp_mx.runs.trained_run import TrainedRun
from edp_mx.runtime.files import write_json
from edp_mx.runtime.npz import Arrays


def write_huggingface(trained: TrainedRun, out: Path) -> None:
    """Write a trained model, its heads and its ancestry, if the layout has a place for it.

    A language model is as the layout has it (BertForMaskedLM, GPT2LMHeadModel). A BERT that reads
    the pooled [CLS] and has labels alone becomes a BertForSequenceClassification. Any other BERT
    with labels gets `modeling.py`, which computes what transformers has no class for.
    """
    config, model, tokenizer = trained.config.model, trained.model, trained.vocabulary.tokenizer
    family = FAMILIES[config.family]
    own = {name: values.data().asnumpy() for name, values in model.tensors().items()}
    has_labels = bool(model.heads) and not own
    if family.checkpoint_of is None or family.write_checkpoint is None or tokenizer is None:
        able = " or ".join(each.name for each in FAMILIES.values() if each.checkpoint_of)
        raise UserError(
            f"{trained.run.path} has model.family: {family.name}, and Hugging Face's layout has a "
            f"place only for {able}; {_elsewhere(trained)}"
        )
    part = config.trained_part
    if not part.is_merged:
        raise UserError(
            f"{trained.run.path} has model.trained: {part.name}, and Hugging Face's layout has no "
            f"place for a {part.name}; {_elsewhere(trained)}"
        )
    if has_labels:
        require_labels(trained)
        if not isinstance(config, BERTConfig):
            raise UserError(
                f"{trained.run.path} has model.family: {family.name} with labels, for which "
                "Hugging Face's layout has no place; only a bert with labels can be exported"
            )
    if not (has_labels and needs_modeling(trained)):
        _require_defaults(trained)
    write_origin(out / ORIGIN, origin_of(trained.run.path))  # first: no weights without it
    more: Dict[str, Any] = {}
    if has_labels and needs_modeling(trained):
        more = _heads(trained)
        write_json(out / ABOUT, {**about(trained), **_read_by_modeling(trained)})
        write_scripts(trained, out, "modeling.py")
    elif has_labels:
        more = _sequence_head(trained)
    checkpoint = family.checkpoint_of(model.encoder, tokenizer)
    tensors = {**checkpoint.tensors, **own}
    family.write_checkpoint(
        out, config=checkpoint.config, tokenizer=tokenizer, tensors=tensors, **more
    )


def _require_defaults(trained: TrainedRun) -> None:
    """Refuse settings of how a model answers, where no file of the folder has a place for them."""
    answering = trained.model.answering
    if answering is not None and answering != type(answering)():
        raise UserError(
            "--set: Hugging Face's layout has no place for how this model answers; leave it out, "
            f"or {_elsewhere(trained)}"
        )


def _elsewhere(trained: TrainedRun) -> str:
    """Return what can be done with a model instead: ONNX has no place for all of them either."""
    if FAMILIES[trained.config.model.family].graph is not None and "intents" in trained.model.heads:
        return "export it with --to onnx"
    return "let edp-mx predict and serve read the run itself"


def needs_modeling(trained: TrainedRun) -> bool:
    """Whether no class of transformers computes the answers of a BERT with labels.

    With word pieces, but not with others, those of a text are the pieces of its tokens.
    """
    config, heads = trained.config.model, trained.model.heads
    reads_start = getattr(config, "features", "last") == "last" and config.intents == "pooled"
    is_plain = reads_start and isinstance(trained.vocabulary.tokenizer, WordPiece)
    return "slots" in heads or ("intents" in heads and not is_plain)


def _sequence_head(trained: TrainedRun) -> Dict[str, Any]:
    """Return the head of a BertForSequenceClassification and its settings."""
    return {
        "more_tensors": _dense("classifier", trained.model.heads["intents"]),
        "more_settings": {
            "architectures": ["BertForSequenceClassification"],
            "problem_type": "single_label_classification",
            **_numbered(trained.vocabulary.intents),
        },
    }


def _heads(trained: TrainedRun) -> Dict[str, Any]:
    """Return the heads that `modeling.py` reads; that of tags is a BertForTokenClassification's."""
    heads, settings = trained.model.heads, {}
    tensors = _dense("intent_classifier", heads["intents"])
    if "slots" in heads:
        tensors.update(_dense("classifier", heads["slots"].dense))
        settings = {
            "architectures": ["BertForTokenClassification"],
            **_numbered(trained.vocabulary.slots),
        }
    return {"more_tensors": tensors, "more_settings": settings}


def _read_by_modeling(trained: TrainedRun) -> Dict[str, Any]:
    """Return what `modeling.py` reads beside the settings of the other scripts."""
    config = trained.config.model
    assert isinstance(config, BERTConfig)
    mask = trained.model.encoder.bert.mask_state
    return {
        "reads_mean": config.reads_mean,
        "reads_all_layers": config.reads_all_layers,
        "token_layer": config.token_layer or config.num_layers,
        "mask_place": None if mask is None else mask.place,
    }


def _dense(name: str, layer: nn.Dense) -> Arrays:
    """Return a layer's tensors below a name."""
    return {
        f"{name}.weight": layer.weight.data().asnumpy(),
        f"{name}.bias": layer.bias.data().asnumpy(),
    }


def _numbered(labels: Any) -> Mapping[str, Any]:
    """Return the names of labels as config.json has them."""
    return {"id2label": dict(enumerate(labels)), "label2id": {n: i for i, n in enumerate(labels)}}
