"""The shipped configurations and the commands of the pages, made small: they run in seconds."""

import gzip
import re
import shutil

from support.documentation import ROOT

# In the files and after --set alike.
_NUMBERS = (
    (r"(epochs[:=] ?)\d+", r"\g<1>1"),
    (r"(batch_size[:=] ?)\d+", r"\g<1>16"),
    (r"(data\.size=)\d+", r"\g<1>300"),
    (r"(dimension[: ] ?)\d+", r"\g<1>16"),
)
FILES = (
    (r"(num_layers: )\d+", r"\g<1>2"),
    (r"(num_heads: )\d+", r"\g<1>2"),
    (r"(hidden_size: )\d+", r"\g<1>16"),
    (r"(intermediate_size: )\d+", r"\g<1>32"),
    (r"(character_filters: )\d+", r"\g<1>4"),
    (r"^(  size: )\d+", r"\g<1>300"),  # of a corpus, or of a vocabulary
    (r"(corpus: merged)", "\\1\n  size: 300"),
    (r"(length_buckets: )\d+", r"\g<1>1"),
    (r"(split: paper)", "\\1\n  size: 300"),
    (r"(batch_size: )\[.*\]", r"\g<1>[16]"),
    (r"^(trials: )\d+", r"\g<1>2"),
)
_COMMANDS = (
    (r":\d{4,}\b", ":300"),  # of a corpus that is merged
    (r"(--size |--buckets )\d+", r"\g<1>200"),
    (r"(--lira )\d+", r"\g<1>4"),
    (r"(launch/table.\.sh)", r"\1 --configs configs"),  # not those of the checkout
    (r"--budget-hours \d+", "--budget-hours 0.01"),
    (r"(experiments\.tradeoff .*)", r"\1 --dry-run"),  # 24 trainings, each attacked by LiRA
    (r"--budget-seconds \d+", "--budget-seconds 5 --steps 1"),
)
LINES = 300  # of each text


def shrunken(text, *more):
    """A configuration or a script with small numbers."""
    for pattern, instead in (*_NUMBERS, *more):
        text = re.sub(pattern, instead, text, flags=re.M)
    return text


def shrunken_script(text):
    """Commands with small numbers."""
    return shrunken(text, *_COMMANDS)


def shrunken_folder(folder, corpora):
    """A clone's folder with small configurations, and the beginnings of the public texts."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(ROOT / "configs", folder / "configs")
    (folder / "results").mkdir()
    for path in (ROOT / "results").glob("*.jsonl"):
        shutil.copy(path, folder / "results")
    shutil.copytree(ROOT / "experiments" / "grids", folder / "experiments" / "grids")
    for path in [
        each for name in ("configs", "experiments") for each in (folder / name).rglob("*.yaml")
    ]:
        text = shrunken(path.read_text(), *FILES)
        if path.parent.name == "pretrain":  # whose texts a page makes as long as they are
            text = text.replace("batch_size: 16", "batch_size: 256")
        path.write_text(re.sub(r"(  size: 300\n)(  size: .*\n)+", r"\1", text))
    (folder / "text").mkdir()
    for path in (corpora / "text").glob("*.txt.gz"):
        beginning_of(path, folder / "text" / path.name)
    return folder


def beginning_of(path, out):
    """Writes the first lines of a text."""
    with gzip.open(path, "rt") as source:
        lines = [line for line, _ in zip(source, range(LINES))]
    with gzip.open(out, "wt") as written:
        written.writelines(lines)
