"""The scripts of an exported folder, and the settings that they read."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Optional

from edp_mx.data.batching import PieceTable
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import MASK, SEPARATOR
from edp_mx.errors import UserError
from edp_mx.runs.exported.exported_model import PIECES
from edp_mx.runs.trained_run import TrainedRun
from edp_mx.runtime.files import read_bytes, write_text
from edp_mx.tasks.confidence import Confidence

_SHIPPED = Path(__file__).parent / "shipped"


def require_labels(trained: TrainedRun) -> None:
    """Refuse a model that answers with something else than labels and slots."""
    if not trained.model.heads.keys() <= {"intents", "slots"}:
        raise UserError(
            f"{trained.run.path} has task: {trained.task.name}, whose model gives no labels; only "
            "one that does can be exported like this"
        )


def write_scripts(trained: TrainedRun, out: Path, *names: str) -> None:
    """Write `encode.py`, `decode.py`, other scripts, and the tokenizer that the first reads."""
    tokenizer = trained.vocabulary.tokenizer
    if tokenizer is not None:
        write_text(out / PIECES, tokenizer.library_json())
    encode = "encode_words.py" if tokenizer is None else "encode_pieces.py"
    for name in ("encode.py", "decode.py", *names):
        source = _SHIPPED / (encode if name == "encode.py" else name)
        write_text(out / name, read_bytes(source).decode())


def about(trained: TrainedRun) -> Dict[str, Any]:
    """Return the settings that the scripts read in `ABOUT`, as plain values."""
    data, vocabulary = trained.config.data, trained.vocabulary
    found: Dict[str, Any] = {
        "run": trained.run.path.resolve().name,
        "task": trained.task.name,
        "token_pattern": data.token_pattern,
        "max_tokens": data.max_tokens,
        "reads_second": trained.reads_second,
    }
    if vocabulary.tokenizer is None:
        found.update(lowercase=vocabulary.lowercase, max_characters=data.max_characters)
        found.update(words=list(vocabulary.words), characters=list(vocabulary.characters))
    else:
        found.update(_of_pieces(vocabulary.tokenizer, data.max_pieces, vocabulary.template))
    confidence = trained.model.answering
    assert isinstance(confidence, Confidence)
    found.update(asdict(confidence), intents=list(vocabulary.intents))
    if "slots" in trained.model.heads:
        found["slots"] = list(vocabulary.slots)
        chain = trained.model.chain()._asdict()
        found.update({name: scores.tolist() for name, scores in chain.items()})
    return found


def _of_pieces(tokenizer: Tokenizer, max_pieces: int, template: Optional[str]) -> Dict[str, Any]:
    """Return what is written around the pieces of an utterance, and how its tokens are spelled."""
    table = PieceTable.of((), tokenizer, max_pieces=max_pieces, template=template)
    ids = tokenizer.special_ids
    return {
        "before": list(table.frame.before),
        "after": list(table.frame.after),
        "room": table.room,
        "special": {SEPARATOR: ids.sep, MASK: ids.mask},
        "unknown": ids.unk,
        "before_token": tokenizer.before_token,
    }
