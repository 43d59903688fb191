"""Make, fetch, check, describe and merge corpora; write text, words, labels; train vectors."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List

from tqdm import tqdm

from edp_mx.cli.console import (
    add_columns,
    add_command,
    columns_of,
    print_json,
    refuse_filled,
    refuse_foreign,
    require_at_least,
    show,
    whole,
)
from edp_mx.cli.data_check import add_check
from edp_mx.cli.data_embeddings import add_train_embeddings
from edp_mx.cli.data_lists import add_lists
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of, lines_of
from edp_mx.runtime.progress import progress_bar

EXAMPLES = """\
examples:
  edp-mx data make health --size 1000000 --out data/health
  edp-mx data fetch atis --out data/atis
  edp-mx data fetch snips --out data/snips --from /mnt/mirror/snips
  edp-mx data check mine.jsonl
  edp-mx data describe data/atis
  edp-mx data describe video
  edp-mx data text snips nlu_eval health --out text/others.txt.gz
  edp-mx data words atis snips text/others.txt.gz --public --out words.txt
  edp-mx data labels mine.jsonl --out labels.json
  edp-mx data merge snips nlu_eval health:20000 --out merged.jsonl.gz
  edp-mx data train-embeddings text/*.txt.gz --out vectors/public.vec.gz --dimension 100
"""
MAKE_EXAMPLES = """\
Writes utterances.jsonl (a {"tokens", "slots", "intent", "id"} per line), corpus.json and README.md.
The same corpus, size and seed give the same bytes; the first n utterances do not depend on size.

examples:
  edp-mx data make communication --size 20000 --out data/communication
  edp-mx data make health --size 1000000 --out data/health_7 --seed 7
"""
FETCH_EXAMPLES = """\
What comes is checked against SHA-256 checksums (dstc8, whose are not known: against the number of
its files); the folder appears whole or not at all.

examples:
  edp-mx data fetch atis --out data/atis
  edp-mx data fetch nlu_eval --out data/nlu_eval
  edp-mx data fetch snips --out data/snips --from /mnt/mirror/snips
  edp-mx data fetch nlu_eval --out data/nlu_eval --from http://127.0.0.1:8000/master.zip
"""
DESCRIBE_EXAMPLES = """\
Any layout that training reads: seq.in/seq.out/label, JSON lines, CSV and TSV, Parquet, CoNLL,
Rasa's nlu.yml, SNIPS' and CLINC150's JSON, NLU-Eval's CSV, DSTC8's dialogues, tables and dialogues
to generate text from. --columns says what columns or keys are called, as data.columns in a
configuration. Where utterances name their users (a file user beside the three, the key "user", or a
dialogue), these are counted. Beside the counts stand the sizes of the parts by data.split, how many
utterances repeat the words of another one and how often the most frequent text is there, and how
many utterances data.max_tokens cuts (64 by default) or, with a checkpoint, data.max_pieces.

examples:
  edp-mx data describe data/atis
  edp-mx data describe mine.jsonl --max-tokens 32
  edp-mx data describe mine.jsonl --show      (and three of its utterances)
  edp-mx data describe mine.csv --columns text=utterance intent=category
  edp-mx data describe dstc8 --columns prompt=context   (the system's turns)
  edp-mx data describe nlu_eval               (a public corpus that was fetched)
  edp-mx data describe communication          (a sample of 10,000)
"""
SAMPLE = 10_000  # utterances of a synthetic corpus that is described by its name
README = """\
# {corpus}: a synthetic corpus

{size:,} utterances that nobody said, made by edp_mx's seeded grammar as a stand-in for the paper's
internal {corpus} corpus. Names, numbers, medicines and titles are fictional.

- Made by: `edp-mx data make {corpus} --size {size} --seed {seed}`
- `utterances.jsonl`: one {{"tokens", "slots", "intent", "id"}} per line, slots in BIO
- SHA-256 of `utterances.jsonl`: `{sha256}`
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    make = add_command(actions, "make", run_make, "write a synthetic corpus", MAKE_EXAMPLES)
    make.add_argument("corpus", metavar="communication|health|video")
    make.add_argument("--size", type=whole, required=True, metavar="N", help="utterances")
    make.add_argument("--out", type=Path, required=True, metavar="DIR")
    make.add_argument("--seed", type=whole, default=1, metavar="S", help="default 1")
    fetch = add_command(actions, "fetch", run_fetch, "download a public corpus", FETCH_EXAMPLES)
    fetch.add_argument("corpus", metavar="atis|snips|nlu_eval|dstc8|e2e|dart")
    fetch.add_argument("--out", type=Path, metavar="DIR", help="default: data/<corpus>")
    fetch.add_argument("--from", dest="source", metavar="DIR|URL", help="a mirror or an archive")
    told = add_command(
        actions, "describe", run_describe, "count utterances, words and labels", DESCRIBE_EXAMPLES
    )
    told.add_argument("corpus", metavar="PATH|NAME")
    told.add_argument("--show", action="store_true", help="show three utterances of it")
    add_columns(told)
    told.add_argument("--max-tokens", type=whole, default=64, metavar="N",
                      help="count what data.max_tokens=N cuts, default 64")  # fmt: skip
    told.add_argument("--checkpoint", type=Path, metavar="DIR",
                      help="count also what data.max_pieces cuts of its word pieces")  # fmt: skip
    told.add_argument(
        "--max-pieces", type=whole, metavar="N", help="with --checkpoint, default 128"
    )
    told.add_argument("--json", action="store_true", help="print JSON")
    add_check(actions)
    add_lists(actions)
    add_train_embeddings(actions)


def run_make(arguments: argparse.Namespace) -> int:
    from edp_mx.data.synthetic import STANDINS, make_utterances
    from edp_mx.data.text import write_json_lines
    from edp_mx.runtime.files import sha256_of, write_json, write_text
    from edp_mx.runtime.json_text import read_json

    folder, corpus, facts_file = arguments.out, arguments.corpus, arguments.out / "corpus.json"
    require_at_least(arguments.size, 1, "--size")
    require_at_least(arguments.seed, 0, "--seed")
    if corpus not in STANDINS:
        raise UserError(f"no synthetic corpus {corpus!r}; there are {', '.join(STANDINS)}")
    refuse_foreign(folder, ("utterances.jsonl", "corpus.json", "README.md"))
    facts = {"synthetic": True, "corpus": corpus, "size": arguments.size, "seed": arguments.seed}
    made_before = read_json(facts_file) if facts_file.exists() else {}
    if not (isinstance(made_before, dict) and facts.items() <= made_before.items()):
        refuse_filled(folder)  # only the same corpus is made again in its place
    write_json(facts_file, facts)  # first: a killed call is repeated in the same folder
    made = make_utterances(corpus, size=arguments.size, seed=arguments.seed)
    bar = tqdm(made, corpus, arguments.size, unit=" utterances", unit_scale=True)
    write_json_lines(folder / "utterances.jsonl", (utterance.to_json() for utterance in bar))
    sha256 = sha256_of(folder / "utterances.jsonl")
    write_text(folder / "README.md", README.format(**facts, sha256=sha256))
    print(
        f"{folder / 'utterances.jsonl'}  {count_of(arguments.size, 'utterance')}  sha256 {sha256}"
    )
    return 0


def run_fetch(arguments: argparse.Namespace) -> int:
    from edp_mx.data.download import CORPORA, fetch

    corpus = arguments.corpus
    folder = fetch(corpus, out=arguments.out or Path("data") / corpus, source=arguments.source,
                   has_bar=True)  # fmt: skip
    note = (
        "checksums agree"
        if CORPORA[corpus].manifest
        else "no checksums are known for it: that no file is missing is all that was checked"
    )
    print(f"{folder}  {CORPORA[corpus].licence}; {note}")
    return 0


def run_describe(arguments: argparse.Namespace) -> int:
    from edp_mx.data.description import describe
    from edp_mx.data.encoding import MAX_PIECES
    from edp_mx.data.sources import named_utterances
    from edp_mx.data.tokenizer import load_tokenizer
    from edp_mx.metrics.spans import bracketed

    name = arguments.corpus
    parts: Counter = Counter()
    columns = columns_of(arguments.columns)
    utterances = named_utterances(name, size=SAMPLE, seed=1, parts=parts, columns=columns)
    require_at_least(arguments.max_tokens, 1, "--max-tokens")
    read = progress_bar(is_first=True)(utterances, "reading", None)
    most = MAX_PIECES if arguments.max_pieces is None else arguments.max_pieces
    require_at_least(most, 3, "--max-pieces")
    tokenizer = arguments.checkpoint and load_tokenizer(arguments.checkpoint)
    description = describe(
        read, max_tokens=arguments.max_tokens, max_pieces=most, tokenizer=tokenizer
    )
    if not description.utterances:
        raise UserError(f"{name} holds no utterances")
    if arguments.json:
        facts = {**asdict(description), "parts": dict(parts)}
        print_json({k: v for k, v in facts.items() if k != "examples" or arguments.show})
        return 0
    lines = [*_lines(name, description), *_split_lines(parts)]
    if arguments.show:
        lines.append("examples:")
        for each in description.examples:
            text = f"{each.intent}: {bracketed(each.tokens, each.slots)}"
            lines += lines_of(text, first="  ", rest="      ", width=78)
    show("\n".join(lines), is_wide=False)
    return 0


def _lines(name: str, description: Any) -> List[str]:
    from edp_mx.data.description import QUANTILES

    intents = list(description.intents.items())
    lengths = zip(QUANTILES, description.lengths)
    most = description.max_pieces
    pieces = f" or data.max_pieces={most}" if most else ""
    return [
        f"{name}",
        f"utterances     {description.utterances:>12,}",
        f"tokens         {description.tokens:>12,}",
        f"distinct words {description.words:>12,}",
        f"intents        {len(intents):>12,}",
        f"slot types     {len(description.slots):>12,}",
        f"slot spans     {sum(description.slots.values()):>12,}",
        *_user_lines(description),
        f"repeats: {description.repeats.describe()}",
        "tokens per utterance: " + ", ".join(f"{q:.0%} ≤ {length}" for q, length in lengths),
        f"cut by data.max_tokens={description.max_tokens}{pieces}: "
        f"{count_of(description.cut, 'utterance')}",
        "most common intents:",
        *[f"  {count:>9,}  {intent}" for intent, count in intents[:5]],
        "rarest intents:",
        *[f"  {count:>9,}  {intent}" for intent, count in intents[-5:]],
    ]


def _split_lines(parts: Dict[str, int]) -> List[str]:
    """Print how many utterances data.split gives to each part."""
    from edp_mx.data.config import DataConfig
    from edp_mx.data.splits import PARTS, sizes_by

    paper = sizes_by(DataConfig().fractions or (), sum(parts.values())).values()
    lines = ["training, validation and test utterances, by data.split:"]
    lines.append(
        "  paper  " + ", ".join(f"{size:,}" for size in paper) + "  (the default, 45:5:50)"
    )
    if {"train", "test"} <= set(parts):
        own = ", ".join(f"{parts[part]:,}" for part in PARTS)
        without = "" if parts["validation"] else "  (5 % of the first validates)"
        lines.append(f"  own    {own}{without}")
    return lines


def _user_lines(description: Any) -> List[str]:
    """Count users and their utterances, where users are named."""
    if not description.users:
        return []
    least, median, most = description.per_user
    lines = [
        f"users          {description.users:>12,}",
        f"utterances per user: min {least:,}, median {median:,}, max {most:,}",
    ]
    if description.unnamed:
        lines.append(f"without a user {description.unnamed:>12,}")
    return lines
