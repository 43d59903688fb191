"""Write a commented configuration for your own corpus, ready to train.

It writes the lists of words and labels beside it, and prints everything that these files take from
the corpus, since no epsilon covers it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any, Dict, List

from edp_mx.cli.console import add_columns, columns_of, refuse_existing, require_above_zero, show
from edp_mx.data.config import DataConfig, overlap
from edp_mx.data.readers.columns_config import NONE
from edp_mx.data.sources import STANDIN_SIZE, find_named, is_standin
from edp_mx.data.synthetic import STANDINS  # public, and at hand wherever edp_mx is
from edp_mx.dp.accounting.units import UNITS
from edp_mx.errors import UserError
from edp_mx.runs.record import RECORDS
from edp_mx.runtime.console_text import count_of, lines_of
from edp_mx.runtime.progress import progress_bar, start_logging
from edp_mx.tasks.classification.task import CLASSIFICATION
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from edp_mx.tasks.registry import TASKS
from edp_mx.tasks.task import LabellingTask

EXAMPLES = """\
examples:
  edp-mx init mine.jsonl
  edp-mx init mine.jsonl --epsilon 4 --user-key user --start-from checkpoints/minilm
  edp-mx init reviews.csv --task classification --columns text=review intent=verdict
  edp-mx init mine.jsonl --public atis snips text/others.txt.gz --labels labels.json
"""
LABELLING = {each.name: each for each in TASKS.values() if isinstance(each, LabellingTask)}
WITHOUT_SLOTS = f"slots={NONE}"


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("corpus", type=Path, metavar="PATH", help="the corpus, in any layout that training reads")
    add("--task", choices=tuple(LABELLING),
        help="what is learned, default intent_slot, or without slots classification: a label per "
        "text")  # fmt: skip
    add("--epsilon", type=float, default=8.0, metavar="E", help="that is to hold, default 8")
    add("--delta", type=float, metavar="D",
        help="at which it is to hold, below 1/n; default 1/(2n)")  # fmt: skip
    add("--user-key", metavar="KEY",
        help="protect all utterances of a user together; KEY has the name of the user")  # fmt: skip
    add("--start-from", type=Path, metavar="RUN|CHECKPOINT",
        help="a run on public utterances, or a BERT in Hugging Face's layout")  # fmt: skip
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
    users = [f"user={arguments.user_key}"] if arguments.user_key not in (None, "user") else []
    parts: Counter = Counter()
    without = [WITHOUT_SLOTS] if arguments.task == CLASSIFICATION.name else []
    columns = columns_of([*arguments.columns, *users, *without])
    start_logging(is_first=True)  # a large corpus is kept in the cache, and the log names it
    progress = progress_bar(is_first=True)
    read = named_utterances(str(path), size=0, seed=0, parts=parts, columns=columns)
    told = describe(progress(read, "reading the corpus", None))
    _refuse_unlearnable(path, told)
    if not told.slots and columns.slots is None and columns.spans is None:
        columns = replace(columns, slots=NONE)
    task = LABELLING[arguments.task or (INTENT_SLOT if told.slots else CLASSIFICATION).name]
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
        **_labels(arguments, listed),
    )
    written = _write(arguments, told, config, out)
    blocks = (_facts(told, config), written, _outlook(told, config), _next(arguments, config, out))
    show("\n\n".join("\n".join(lines) for lines in blocks), is_wide=False)
    return 0


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


def _refuse_unlearnable(path: Path, told: Any) -> None:
    """Refuse a corpus without utterances, or without anything to tell apart in them."""
    if not told.utterances:
        raise UserError(f"{path} holds no utterances")
    if not told.slots and len(told.intents) < 2:
        raise UserError(
            f"{path} has the one label {min(told.intents)!r} and no slots, so there is nothing "
            "to learn: name them by --columns intent=NAME slots=NAME; prompts with replies are for "
            "configs/causal_lm/private.yaml (docs/generation.md)"
        )


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
    if not arguments.labels:
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


def _facts(told: Any, config: Any) -> List[str]:
    """Count the corpus, and score a constant answer to all of it."""
    from edp_mx.reports.baselines import describe_baseline

    users = f", {count_of(told.users, 'user')}" if told.users else ""
    several, slots = [], count_of(len(told.slots), "slot")
    if told.users and not UNITS[config.unit].is_user:
        several = lines_of(
            f"A user says up to {told.per_user[-1]:,} of them; with --user-key user, ε is that of "
            "all that one user says."
        )
    return [
        *lines_of(
            f"{config.path}: {count_of(told.utterances, 'utterance')}, "
            f"{count_of(told.tokens, 'token')}, "
            f"{count_of(len(told.intents), 'intent' if config.task.has_slots else 'label')}"
            f"{f', {slots}' if config.task.has_slots else ''}{users}"
        ),
        config.sizes,
        *several,
        describe_baseline(
            config.task.constant_of(told.intents, sum(told.slots.values())), config.task
        ),
    ]


def _outlook(told: Any, config: Any) -> List[str]:
    """Print the scores to expect by measured runs like this one, or that there are none."""
    from edp_mx.reports.expectation import say
    from edp_mx.runs.expected_scores import exact_runs, expect
    from edp_mx.runs.file_types import Labels
    from edp_mx.runs.records import records_below
    from edp_mx.runs.wanted import StartKind, Wanted, labels_in_words

    start = StartKind.at(config.start.folder) if config.start else StartKind(config.family)
    labels, epsilon = Labels(len(told.intents), len(told.slots)), float(config.epsilon)
    wanted = Wanted(config.num_units, epsilon, labels, start, f"{config.unit}s")
    lines = lines_of(
        f"What to expect with {wanted.n:,} {wanted.units} for training at ε = {epsilon:g}, by runs "
        f"on about as many labels ({labels_in_words(labels)}):"
    )
    try:
        lines += say(expect(exact_runs(records_below(RECORDS), start), wanted), wanted)
    except UserError as error:
        lines += lines_of(f"Nothing: {error}.")
    if UNITS[config.unit].is_user:
        lines += lines_of("In these runs, each unit is one utterance; none with users is recorded.")
    if config.delta is not None:
        lines += lines_of("All of these are at δ = 1/(2n); at a smaller δ, expect worse.")
    if config.start is None:
        lines += lines_of(
            "From random weights, a few thousand utterances teach hardly more than the constant "
            "answer above. Start from a public encoder: call edp-mx checkpoint fetch minilm, and "
            "then this again with --start-from checkpoints/minilm."
        )
    return lines


def _next(arguments: argparse.Namespace, config: Any, out: Path) -> List[str]:
    """Print which inputs must be public, and the next command."""
    said = (
        "No ε covers what was read of the corpus for these files: the numbers in "
        f"{out} and the names of the labels. All else above is on this screen alone."
    )
    lines = lines_of(said)
    if not (arguments.labels or arguments.labels_are_public):
        lines += lines_of(
            f"Read {config.labels}: if all names in it are public (they stand in your "
            'program, say), remove its line "private". Until then training is refused.'
        )
    run = quote(f"runs/{out.stem}")
    before = "next" if arguments.labels or arguments.labels_are_public else "after that"
    return [*lines, f"{before}: NP=2 launch/train.sh {quote(str(out))} --run {run}"]
