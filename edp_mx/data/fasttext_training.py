"""Training of fastText's word vectors on public text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Sequence

from edp_mx.data.fasttext_model import FastTextModel
from edp_mx.data.lists import lines_as_texts
from edp_mx.data.origin import noted_sources
from edp_mx.data.text import lines_of, write_lines
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike
from edp_mx.runtime.processes import end_with_parent
from edp_mx.runtime.progress import Progress, no_progress

OUT_SUFFIXES = (".bin", ".vec", ".vec.gz")
BUCKETS = 2_000_000  # fastText's own default
_AT_AN_EDGE = re.compile(r"""(?<!\S)([.,;:!?"()…]+)|([.,;:!?"()…]+)(?!\S)""")
# `train_unsupervised` has no argument for the seed, but takes the default from this table.
_TRAIN = """
import json, sys
import fasttext
from fasttext.FastText import unsupervised_default

text, out, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
unsupervised_default["seed"] = settings.pop("seed") + 1  # its generator takes 0 for 1
try:
    model = fasttext.train_unsupervised(text, model="skipgram", verbose=0, **settings)
except (ValueError, RuntimeError) as error:
    sys.exit(str(error))
model.save_model(out)
"""


def train_fasttext(
    texts: Sequence[PathLike],
    out_path: PathLike,
    dimension: int = 300,
    *,
    words_path: Optional[PathLike] = None,
    is_lowercase: bool = False,
    splits_punctuation: bool = False,
    epochs: int = 5,
    min_count: int = 2,
    buckets: int = BUCKETS,
    threads: int = 1,
    seed: int = 0,
    progress: Progress = no_progress,
) -> int:
    """Train subword vectors (skip-gram) on texts of separate utterances, one per line.

    A file beside `out_path` says what the texts were, by which a training on one of them with
    privacy tells that no ε holds.

    Args:
        texts: UTF-8 files, plain or .gz. They must be apart from the training part: no ε covers
            what the vectors reveal of it.
        out_path: a .bin, which makes a vector of any word, or the words' vectors as text (.vec or
            .vec.gz), from which any program reads the same float32 values.
        words_path: for text, a public list with one word per line: these words are written, in its
            order, also those that the texts lack. Without one, the texts' words are written, the
            most frequent first.
        is_lowercase: whether the texts and the list are read in lower case.
        splits_punctuation: whether punctuation at the edge of a word becomes a word ("card?").
        min_count: rarer words have no vector of their own.
        buckets: vectors shared by all subwords. A .bin takes 4 · `dimension` bytes for each.
        threads: more than one is faster, but not repeatable.
        seed: of the first values and the draws. Equal input, seed and one thread give equal bytes.

    Returns:
        The number of words with a vector of their own, or of words written.

    Raises:
        UserError: a text is missing, is no UTF-8 or holds no word that occurs `min_count` times; a
            number is too small; the name of `out_path` ends in something else; fastText is missing.

    Edge cases:
        With fewer than ten threads, fastText initialises only some of its vectors and saves the
        memory that it found in the others; it therefore runs in a process of its own, where that
        memory is zero.
    """
    settings = {"dim": dimension, "epoch": epochs, "minCount": min_count, "bucket": buckets,
                "thread": threads, "seed": seed}  # fmt: skip
    out = Path(out_path)
    _check(out, settings, words_path)
    words = None if words_path is None else _listed(Path(words_path), is_lowercase)
    lines = _lines(texts, is_lowercase=is_lowercase, splits_punctuation=splits_punctuation)
    with _folder_beside(out) as folder:
        text, model = Path(folder, "text.txt"), Path(folder, "model.bin")
        if not write_lines(text, progress(lines, "text", None)):
            raise UserError(f"{' and '.join(map(str, texts))}: there is no line with text")
        _train(text, model, settings, ", ".join(map(str, texts)), progress)
        read = [(str(path), lines_as_texts(path)) for path in texts]
        with noted_sources(out, read, seed=seed):
            if out.suffix != ".bin":
                return _write_vectors(model, out, words)
            count = len(FastTextModel(model).words())
            os.replace(model, out)
            return count


def _folder_beside(out: Path) -> tempfile.TemporaryDirectory:
    """Make a folder for unfinished files on the same disk as the finished one."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.")
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}") from error


def _check(out: Path, settings: Dict[str, int], words_path: Optional[PathLike]) -> None:
    if find_spec("fasttext") is None:
        raise UserError("fastText needs its package: run `pip install fasttext-numpy2`")
    if not out.name.endswith(OUT_SUFFIXES):
        raise UserError(f"{out}: the name must end in {', '.join(OUT_SUFFIXES)}")
    if words_path is not None and out.suffix == ".bin":
        raise UserError(
            f"{out}: a .bin makes vectors of all words; for a list of words, write .vec or .vec.gz"
        )
    for name, value in settings.items():
        if value < (least := int(name != "seed")):
            said = {"dim": "dimension", "epoch": "epochs", "minCount": "min_count",
                    "bucket": "buckets", "thread": "threads"}.get(name, name)  # fmt: skip
            raise UserError(f"{said} is {value}; it must be {least} or more")


def _listed(path: Path, is_lowercase: bool) -> List[str]:
    """Return the words of a list, each once."""
    words = dict.fromkeys(w.lower() if is_lowercase else w for w in lines_of(path))
    if not words:
        raise UserError(f"{path} holds no word")
    return list(words)


def _lines(
    texts: Sequence[PathLike], *, is_lowercase: bool, splits_punctuation: bool
) -> Iterator[str]:
    """Yield the lines of all texts, one text after the other."""
    for line in chain.from_iterable(lines_of(Path(path)) for path in texts):
        line = line.lower() if is_lowercase else line
        yield _AT_AN_EDGE.sub(r" \1\2 ", line) if splits_punctuation else line


def _train(
    text: Path, model: Path, settings: Dict[str, int], source: str, progress: Progress
) -> None:
    """Run fastText in a process of its own, whose memory starts at zero."""
    with subprocess.Popen(
        [sys.executable, "-c", _TRAIN, str(text), str(model), json.dumps(settings)],
        env={**os.environ, "MALLOC_PERTURB_": "255"},  # glibc: new memory is zero
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=end_with_parent,
    ) as process:
        total = text.stat().st_size * (1 + settings["epoch"])  # the first pass counts the words
        for _ in progress(_percents(process, total), "fastText", 100):
            pass
        assert process.stderr is not None
        said = process.stderr.read().strip()
    if process.returncode:
        reason = said.rpartition("\n")[2] or f"it ended with {process.returncode}"
        raise UserError(f"fastText cannot learn from {source}: {reason}")


def _percents(process: subprocess.Popen, total: int) -> Iterator[int]:
    """Yield each percent of the bytes that a process will read, all by its end.

    fastText itself says nothing of how far it is with one thread.
    """
    done = 0
    while process.poll() is None:
        reached = min(99, 100 * bytes_read(process.pid) // total)
        yield from range(done, reached)
        done = max(done, reached)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.2)
    yield from range(done, 100)


def bytes_read(process: int) -> int:
    """Return how many bytes a process has read so far, 0 where the system does not tell."""
    try:
        counts = Path(f"/proc/{process}/io").read_text().split()
    except OSError:  # it has ended, or this is no Linux
        return 0
    return int(counts[counts.index("rchar:") + 1])


def _write_vectors(model_path: Path, out: Path, words: Optional[Sequence[str]]) -> int:
    """Write words and vectors as text; nine digits tell every float32 from all others."""
    model = FastTextModel(model_path)
    words = model.words() if words is None else words
    rows: Iterable[str] = (
        f"{word} {' '.join(map('{:.9g}'.format, model.vector(word).tolist()))}" for word in words
    )  # each (D,)
    write_lines(out, chain([f"{len(words)} {model.dimension}"], rows))
    return len(words)
