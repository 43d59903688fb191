"""Score a bag of words on the labels of corpora, without privacy: scikit-learn's, as a baseline.

A text becomes the TF-IDF weights of its words and pairs of words, and a linear SVM learns
the labels of the training part. Parts are those of each configuration.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import List, Sequence, Tuple

from experiments.command import main

EXAMPLES = """\
examples:
  python -m experiments.bag_of_words configs/snips_bert.yaml configs/atis_bert.yaml
  python -m experiments.bag_of_words configs/classification/clinc150.yaml --out bag_of_words.md
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("configs", nargs="+", type=Path, metavar="CONFIG", help="each of one corpus")
    add("--out", type=Path, metavar="FILE.md", help="write the table there too")


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.config import load_config
    from edp_mx.data.corpus import load_corpus
    from edp_mx.reports.table import render_table
    from edp_mx.runtime.files import write_text

    rows = []
    for path in arguments.configs:
        corpus = load_corpus(load_config([path]).data)
        parts = corpus.train, corpus.validation, corpus.test
        texts = [[" ".join(each.tokens) for each in part] for part in parts]
        labels = [[each.intent for each in part] for part in parts]
        right, strength = best_score(texts, labels)
        facts = (f"{len(labels[0]):,}", str(len({*labels[0]})), f"{100 * right:.2f}", str(strength))
        rows.append((corpus.name, *facts))
    table = render_table(("corpus", "n", "labels", "labels right %", "C"), rows)
    if arguments.out is not None:
        command = f"python -m experiments.bag_of_words {' '.join(map(str, arguments.configs))}"
        write_text(
            arguments.out, f"# A bag of words, without privacy\n\nMade by `{command}`.\n\n{table}\n"
        )
    print(table)
    return 0


def best_score(texts: Sequence[List[str]], labels: Sequence[List[str]]) -> Tuple[float, float]:
    """Return the share right on the last part, test, and the C that the second one has chosen."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC

    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    train = vectorizer.fit_transform(texts[0])
    validation, test = map(vectorizer.transform, texts[1:])
    scored = []
    for strength in (0.1, 1, 10):
        model = LinearSVC(C=strength).fit(train, labels[0])
        scored.append((model.score(validation, labels[1]), model.score(test, labels[2]), strength))
    _, right, strength = max(scored, key=lambda each: each[0])
    return right, strength


if __name__ == "__main__":
    sys.exit(main("bag_of_words", sys.argv[1:]))
