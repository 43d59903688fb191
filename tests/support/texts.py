"""Made-up texts with labels, which a model can learn: a word decides, the others say nothing."""

import csv

WORDS = {"praise": ("splendid", "moving", "funny"), "blame": ("dull", "clumsy", "loud"),
         "neither": ("long", "recent", "french")}  # fmt: skip
OTHERS = ("a", "film", "the", "with", "its", "plot", "and", "cast", "music", "scenes")


def texts(generator, count):
    """Pairs (text, label); praise is twice as common as each of the others."""
    labels = ("praise", "praise", "blame", "neither")
    made = []
    for _ in range(count):
        label = labels[generator.integers(4)]
        words = list(generator.choice(OTHERS, generator.integers(3, 9)))
        words.insert(generator.integers(len(words) + 1), generator.choice(WORDS[label]))
        made.append((" ".join(words), label))
    return made


def write_table(path, rows, header=("sentence", "label")):
    """A TSV, as GLUE has them."""
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([header, *rows])
