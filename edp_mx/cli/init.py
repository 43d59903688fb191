"""Write a commented configuration for your own corpus, ready to train.

It writes the lists of words and labels beside it, and prints everything that these files take from
the corpus, since no epsilon covers it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List

from edp_mx.cli.console import add_columns, columns_of, refuse_existing, require_above_zero, show
from edp_mx.cli.init_text import facts, outlook, what_next
from edp_mx.data.config import DataConfig, overlap
from edp_mx.data.readers.columns_config import NONE, ColumnsConfig
from edp_mx.data.readers.replies import LABEL
from edp_mx.data.sources import STANDIN_SIZE, find_named, is_standin
from edp_mx.data.synthetic import STANDINS  # public, and at hand wherever edp_mx is
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.progress import progress_bar, start_logging
from edp_mx.tasks.causal_lm.task import CAUSAL_LM
from edp_mx.tasks.classification.task import CLASSIFICATION
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from edp_mx.tasks.task import Task

EXAMPLES = """\
examples:
  edp-mx init mine.jsonl
  edp-mx init mine.jsonl --epsilon 4 --user-key user --start-from checkpoints/minilm
  edp-mx init reviews.csv --task classification --columns text=review intent=verdict
  edp-mx init mine.jsonl --public atis snips text/others.txt.gz --labels labels.json
  edp-mx init replies.csv --start-from runs/public_prompts
"""
LEARNED = {each.name: each for each in (INTENT_SLOT, CLASSIFICATION, CAUSAL_LM)}


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("corpus", type=Path, metavar="PATH", help="the corpus, in any layout that training reads")
    add("--task", choices=tuple(LEARNED),
        help="by default intent_slot; classification (a label per text) if there are no slots; "
        "causal_lm if there are prompts and replies")  # fmt: skip
    add("--epsilon", type=float, default=8.0, metavar="E", help="the ε that must hold (8)")
    add("--delta", type=float, metavar="D",
        help="δ of that ε, below 1/n (1/(2n))")  # fmt: skip
    add("--user-key", metavar="KEY",
        help="protect all utterances of a user together; KEY holds the user's name")  # fmt: skip
    add("--start-from", type=Path, metavar="RUN|CHECKPOINT",
        help="a run on public utterances, or a BERT or GPT-2 in Hugging Face's layout")  # fmt: skip
    add("--public", nargs="+", default=list(STANDINS), metavar="CORPUS|TEXT",
        help=f"public text to take words from, default {' '.join(STANDINS)}")  # fmt: skip
    add_columns(parser, "--public-columns", "the same as --columns, for the corpora of --public")
    add("--labels", type=Path, metavar="FILE.json", help="a public list of the labels")
    add("--labels-are-public", action="store_true",
        help="the names of all labels of the corpus are public")  # fmt: skip
    add_columns(parser)
    add("--out", type=Path, metavar="FILE.yaml", help="default: the corpus' name, here")
    add("--force", action="store_true", help="write over files that are there")


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.data.description import describe
    from edp_mx.data.sources import named_utterances
    from edp_mx.runs.first_config import Start, first_config, refuse_without_recipes

    path, out = arguments.corpus, _checked_out(arguments)
    words, listed = out.with_suffix(".words.txt"), out.with_suffix(".labels.json")
    made = [words][bool(arguments.start_from) :] + [listed][bool(arguments.labels) :]
    refuse_existing(*([] if arguments.force else [out, *made]))
    start = Start.of(arguments.start_from, path) if arguments.start_from else None
    refuse_without_recipes()
    parts: Counter = Counter()
    columns = _columns(arguments)
    start_logging(is_first=True)  # a large corpus is kept in the cache, and the log names it
    progress = progress_bar(is_first=True)
    read = named_utterances(str(path), size=0, seed=0, parts=parts, columns=columns)
    told = describe(progress(read, "reading the corpus", None))
    task = _task(arguments, told)
    _refuse_unfit(arguments, told, task, start)
    if task.has_labels and not told.slots and columns.slots is None and columns.spans is None:
        columns = replace(columns, slots=NONE)
    config = first_config(
        path,
        parts=parts,
        columns=columns,
        task=task,
        unit="user" if arguments.user_key else "utterance",
        epsilon=arguments.epsilon,
        delta=arguments.delta,
        start=start,
        words=None if start else words,
        progress=progress,
        **(_labels(arguments, listed) if task.has_labels else {}),
    )
    written = _write(arguments, told, config, out)
    after = outlook(told, config), what_next(arguments, config, out)
    blocks = facts(told, config), written, *after
    show("\n\n".join("\n".join(lines) for lines in blocks), is_wide=False)
    return 0


def _columns(arguments: argparse.Namespace) -> ColumnsConfig:
    users = [f"user={arguments.user_key}"] if arguments.user_key not in (None, "user") else []
    without = [f"slots={NONE}"] if arguments.task == CLASSIFICATION.name else []
    return columns_of([*arguments.columns, *users, *without])


def _checked_out(arguments: argparse.Namespace) -> Path:
    """The file to write, once its content is known to be printable and complete."""
    path = arguments.corpus
    require_above_zero(arguments.epsilon, "--epsilon")
    if not path.exists():
        raise UserError(f"{path} does not exist; name a file or folder of utterances")
    out = arguments.out or Path(f"{path.absolute().name.partition('.')[0]}.yaml")
    for each in filter(None, (path, out, arguments.labels, arguments.start_from)):
        if not str(each).isprintable():  # it goes into comments
            raise UserError(f"{str(each)!r} has characters that cannot be printed: rename it")
    if out.is_dir() or not out.name:
        raise UserError(f"--out {out} is a folder; name a file, such as {out / 'mine.yaml'}")
    for each in (out, out.with_suffix(".words.txt"), out.with_suffix(".labels.json")):
        if each.exists() and each.samefile(path):
            raise UserError(f"{each} is the corpus itself: name another file with --out")
    return out


def _task(arguments: argparse.Namespace, told: Any) -> Task:
    """Return the task that is named, or the one that the corpus is for."""
    if arguments.task:
        return LEARNED[arguments.task]
    if told.slots:
        return INTENT_SLOT
    return CAUSAL_LM if set(told.intents) == {LABEL} else CLASSIFICATION


def _refuse_unfit(arguments: argparse.Namespace, told: Any, task: Task, start: Any) -> None:
    """Refuse a corpus without anything to learn, and a start that does not fit the task."""
    path, is_gpt2 = arguments.corpus, start is not None and start.family == "gpt2"
    if not told.utterances:
        raise UserError(f"{path} holds no utterances")
    if task.has_labels and not told.slots and len(told.intents) < 2:
        raise UserError(
            f"{path} has the one label {min(told.intents)!r} and no slots, so there is nothing "
            "to learn: name them by --columns intent=NAME slots=NAME"
        )
    if task.has_labels and is_gpt2:
        raise UserError(
            f"--start-from: {start.folder} is a GPT-2, which task: {task.name} does not fit"
        )
    if not task.has_labels and not is_gpt2:
        raise UserError(
            "a language model that replies starts from a public GPT-2: name it by --start-from, "
            "e.g. runs/public_prompts or checkpoints/gpt2 (docs/generation.md)"
        )
    if not task.has_labels and (arguments.labels or arguments.labels_are_public):
        raise UserError(f"task: {task.name} has no labels: leave out --labels and the like")


def _labels(arguments: argparse.Namespace, listed: Path) -> Dict[str, Any]:
    path = arguments.corpus
    if arguments.labels:
        return {"labels": arguments.labels, "label_note": "A public list"}
    note = f"Read from {path}, and public by --labels-are-public"
    if not arguments.labels_are_public:
        note = f'Read from {path}: training is refused until this list has no line "private"'
    return {"labels": listed, "label_note": note}


def _write(arguments: argparse.Namespace, told: Any, config: Any, out: Path) -> List[str]:
    """Write the files, once nothing can be refused any more; print the purpose of each."""
    from edp_mx.data.labels import LabelsConfig, labels_of
    from edp_mx.data.lists import common_words, labels_in, tokens_of, write_labels
    from edp_mx.data.text import write_lines
    from edp_mx.runtime.files import write_text

    if arguments.labels:  # which must have all labels of the corpus
        labels_of(config.corpus.utterances, LabelsConfig("file", str(arguments.labels)), ())
    text, said = config.to_yaml(out), ["written:"]
    if config.words:
        columns = columns_of(arguments.public_columns, option="--public-columns")
        made: Dict[str, Any] = {"size": STANDIN_SIZE, "seed": 1, "columns": columns}
        _refuse_private(arguments.public, config, made)
        words = common_words(t for name in arguments.public for t in tokens_of(name, **made))
        write_lines(config.words, words)
        count = count_of(len(words), "word")
        said.append(f"  {config.words}: {count} of {', '.join(arguments.public)}")
    if config.labels and not arguments.labels:
        declared_by = "--labels-are-public" if arguments.labels_are_public else None
        labels = labels_in(told)
        write_labels(config.labels, labels, private=[str(config.path)], declared_by=declared_by)
        said.append(f"  {config.labels}: the labels of {config.path}")
    write_text(out, text)
    batches = f"batches of {config.batch_size:,}, {count_of(config.epochs, 'epoch')}"
    return [*said, f"  {out}: {config.recipe.what} by DP-SGD, {batches}"]


def _refuse_private(public: List[str], config: Any, made: Dict[str, Any]) -> None:
    """Refuse to take words that are to be public from the private corpus, or from a copy of it."""
    from edp_mx.data.lists import texts_of
    from edp_mx.data.origin import AtHand

    mine = AtHand(DataConfig(corpus=config.path.name, path=str(config.path)), config.corpus)
    for name in public:
        shared = "files" if Path(name).exists() and overlap(name, config.path) else ""
        if not shared and not is_standin(name):
            is_public = mine.is_public(texts_of(name, **made), find_named(name))
            shared = "" if is_public else "utterances"
        if shared:
            raise UserError(
                f"--public: {name} shares {shared} with the corpus, which is private; name public "
                "text, or start from a public model with --start-from"
            )
