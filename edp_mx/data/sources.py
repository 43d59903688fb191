"""Where the utterances of a corpus come from: files, or the grammar of a stand-in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

from edp_mx.data.config import PUBLIC_CORPORA, DataConfig
from edp_mx.data.readers import read_utterances, stream_utterances
from edp_mx.data.synthetic import STANDINS, make_utterances
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

_STANDIN_SIZE = 20_000
_SAMPLE_SEED = 1 << 32  # beyond the seeds of data


def is_made(config: DataConfig) -> bool:
    """Whether nothing is read: a stand-in that is drawn anew."""
    return config.corpus in STANDINS and config.path is None


def stream_corpus(config: DataConfig) -> Iterator[Tuple[str, Utterance]]:
    """The whole corpus, made or read, each utterance with the part that it was published in."""
    if not is_made(config):
        return stream_utterances(find_corpus(config), config.layout)
    size = config.size or _STANDIN_SIZE
    made = make_utterances(config.corpus, size=size, seed=config.split_seed)
    return (("", utterance) for utterance in made)


def public_sample(config: DataConfig, path: Optional[str]) -> List[Utterance]:
    """Utterances from which words or labels may be taken without any cost to privacy.

    Args:
        path: where they are; without it a stand-in draws some of its own, by another seed than
            its data, since its grammar is public.

    Raises:
        UserError: no path, and not a stand-in.
    """
    if path is not None:
        return read_utterances(path)
    if config.corpus not in STANDINS:
        raise UserError(
            f"data: source sample needs the path of public utterances; {config.corpus} has none of "
            "its own (only the stand-ins do)"
        )
    seed = _SAMPLE_SEED + config.split_seed
    return list(make_utterances(config.corpus, size=_STANDIN_SIZE, seed=seed))


def find_corpus(config: DataConfig) -> Path:
    """Where a corpus lies.

    Looked for in `path` if set, else `$EDP_MX_DATA/<corpus>`, `data/<corpus>` and
    `../shared/data/<corpus>` below and beside the working folder.

    Raises:
        UserError: it is in none of them; the sentence says how to get it.
    """
    if config.path is not None:
        if not os.path.exists(config.path):
            raise UserError(f"data.path: {config.path} does not exist")
        return Path(config.path)
    if config.corpus not in PUBLIC_CORPORA:
        known = ", ".join((*PUBLIC_CORPORA, *STANDINS))
        raise UserError(
            f"data.corpus: {config.corpus!r} is none of {known}; for a corpus of your own set "
            "data.path"
        )
    roots = [os.environ.get("EDP_MX_DATA"), "data", os.path.join("..", "shared", "data")]
    for root in roots:
        if root and (Path(root) / config.corpus).is_dir():
            return Path(root) / config.corpus
    raise UserError(
        f"the corpus {config.corpus} is not at hand: run `edp-mx data fetch {config.corpus}`, or "
        "set data.path or EDP_MX_DATA"
    )
