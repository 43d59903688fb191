"""`edp-mx data train-embeddings`: word vectors from public text."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from edp_mx.cli.console import add_command, add_new_file, out_of, whole
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.progress import progress_bar

EXAMPLES = """\
The texts must be apart from the training data, one utterance per line, plain or .gz: vectors
made of the training data would carry it past the privacy guarantee. A private training that
recognises its own texts, by FILE.origin.json, has an infinite epsilon. A .bin makes a vector of
any word from its parts; .vec and .vec.gz hold those of the texts' words, or of a public list's.

examples:
  edp-mx data train-embeddings other_utterances.txt --out vectors.bin --dimension 300
  edp-mx data train-embeddings text/a.txt.gz text/b.txt.gz --lowercase --split-punctuation \\
    --dimension 100 --out vectors/public.vec.gz
  edp-mx data train-embeddings text/a.txt.gz --words words.txt --out vectors/words.vec.gz
"""


def add_train_embeddings(actions: Any) -> None:
    train = add_command(
        actions, "train-embeddings", run_train_embeddings, "train fastText word vectors", EXAMPLES
    )
    add = train.add_argument
    add("texts", type=Path, nargs="+", metavar="TEXT", help="one utterance per line, plain or .gz")
    add_new_file(train, "FILE.bin|FILE.vec[.gz]")
    add("--dimension", type=whole, default=300, metavar="D", help="default 300")
    add("--words", type=Path, metavar="FILE", help="write the vectors of these words, one per line")
    add("--lowercase", action="store_true", help="read texts and words in lower case")
    add("--split-punctuation", action="store_true", help="cut punctuation off words' ends")
    add("--epochs", type=whole, default=5, metavar="E", help="default 5")
    add("--min-count", type=whole, default=2, metavar="N",
        help="rarer words have no vector of their own, default 2")  # fmt: skip
    add("--buckets", type=whole, default=2_000_000, metavar="N",
        help="vectors for words' parts, 4·D bytes each in a .bin; default 2,000,000")  # fmt: skip
    add("--threads", type=whole, default=1, metavar="N",
        help="default 1; more are faster but not repeatable")  # fmt: skip
    add("--seed", type=whole, default=0, metavar="S", help="default 0")


def run_train_embeddings(arguments: argparse.Namespace) -> int:
    from edp_mx.data.fasttext_training import train_fasttext

    out, texts = out_of(arguments, list(map(str, arguments.texts))), arguments.texts
    count = train_fasttext(
        texts,
        out,
        arguments.dimension,
        words_path=arguments.words,
        is_lowercase=arguments.lowercase,
        splits_punctuation=arguments.split_punctuation,
        epochs=arguments.epochs,
        min_count=arguments.min_count,
        buckets=arguments.buckets,
        threads=arguments.threads,
        seed=arguments.seed,
        progress=progress_bar(is_first=True),
    )
    sources = ", ".join(map(str, texts))
    sizes = f"{count_of(count, 'word')}, {count_of(arguments.dimension, 'dimension')}"
    print(f"{out}  {sizes}, from {sources}")
    return 0
