"""`edp-mx data text`, `prompts`, `words`, `labels` and `merge`: files made from several corpora."""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Dict

from tqdm import tqdm

from edp_mx.cli.console import (
    add_columns,
    add_command,
    add_new_file,
    columns_of,
    out_of,
    require_at_least,
    whole,
)
from edp_mx.data.sources import STANDIN_SIZE
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of, wrap

TEXT_EXAMPLES = """\
One utterance per line, its tokens with a blank between them, corpus after corpus: what a training
with task: masked_lm and `edp-mx data train-embeddings` read. Leave out the corpus that you will
train on with privacy: text that is pre-trained on is not protected. FILE.origin.json says what was
read, so that a private training recognises its own corpus in what its model starts from.

examples:
  edp-mx data text snips nlu_eval communication health video --out text/for_atis.txt.gz
  edp-mx data text health --size 1000000 --seed 7 --out text/health.txt.gz
  edp-mx data text mine.jsonl text/more.txt.gz --out text/mine.txt
  edp-mx data text mine.csv --columns text=utterance --out text/mine.txt
"""
PROMPTS_EXAMPLES = """\
A prompt per utterance that names its slots, such as `GetWeather: city = "New York"`, and the
utterance as the reply to it. Of an utterance without slots, and of a line of a text (.txt,
.txt.gz), the prompt names words that are drawn. In both, half of the values are replaced by words
that nobody can guess. A language model that was trained on many of them repeats the values of a
table. Leave out the corpus that you will train on with privacy.

examples:
  edp-mx data prompts snips atis nlu_eval text/public.txt.gz --out text/prompts.jsonl.gz
"""
WORDS_EXAMPLES = """\
One word per line, the most common first, for data.vocabulary: {source: file, path: words.txt}.
Name public corpora, stand-ins or texts (.txt, .txt.gz: one utterance per line). Leave out the
corpus that you will train on with privacy: no epsilon covers words that were read from it. So what
is named by its path needs --public, which says that it is another one.

examples:
  edp-mx data words atis snips nlu_eval --out words.txt
  edp-mx data words text/others.txt.gz health --public --min-count 3 --out words.txt
"""
LABELS_EXAMPLES = """\
Writes {"intents": […], "slots": […]} for data.labels: {source: file, path: labels.json}. The labels
of a path are taken for private, and the list says so in its line "private": epsilon then is
infinite, until you have read the list and removed that line. With --public they are not marked.

examples:
  edp-mx data labels mine.jsonl --out labels.json
  edp-mx data labels atis snips --out labels.json
  edp-mx data labels mine.csv --columns text=utterance intent=category --out labels.json
"""

MERGE_EXAMPLES = """\
Writes one labelled corpus, to be trained on without privacy before a training with privacy starts
from it (model.start_from). Labels get the name of their corpus ("atis.flight", "B-atis.city"),
repeated utterances are written once, and :SIZE takes a random subset. Leave out the corpus that you
will train on with privacy: the data of the first training is not protected.

examples:
  edp-mx data merge snips nlu_eval dstc8:40000 health:20000 --out merged/for_atis.jsonl.gz
  edp-mx data merge snips calls.csv --columns text=utterance --out merged/both.jsonl.gz
  edp-mx train configs/model/clc.yaml configs/mechanism/sgd.yaml --set data.corpus=merged \\
    --set data.path=merged/for_atis.jsonl.gz --run runs/start_for_atis
"""


def add_lists(actions: Any) -> None:
    text = add_command(actions, "text", run_text, "write utterances as plain text", TEXT_EXAMPLES)
    text.add_argument("sources", nargs="+", metavar="CORPUS|PATH")
    prompts = add_command(
        actions, "prompts", run_prompts, "write prompts with replies", PROMPTS_EXAMPLES
    )
    prompts.add_argument("sources", nargs="+", metavar="CORPUS|TEXT")
    words = add_command(actions, "words", run_words, "write a list of public words", WORDS_EXAMPLES)
    words.add_argument("sources", nargs="+", metavar="CORPUS|TEXT")
    words.add_argument("--min-count", type=whole, default=1, metavar="N",
                       help="leave out words that occur more rarely, default 1")  # fmt: skip
    words.add_argument("--public", action="store_true", help="corpora given by a path are public")
    labels = add_command(actions, "labels", run_labels, "write a list of labels", LABELS_EXAMPLES)
    labels.add_argument("sources", nargs="+", metavar="CORPUS|PATH")
    labels.add_argument("--public", action="store_true", help="all these labels are public")
    files = {text: "FILE[.gz]", prompts: "FILE.jsonl[.gz]", words: "FILE", labels: "FILE.json"}
    for one, name in files.items():
        add_new_file(one, name)
        add_columns(one)
        one.add_argument("--size", type=whole, default=STANDIN_SIZE, metavar="N",
                         help="utterances of each stand-in, default 20,000")  # fmt: skip
        one.add_argument(
            "--seed", type=whole, default=1, metavar="S", help="of stand-ins and draws, default 1"
        )
    merge = add_command(
        actions, "merge", run_merge, "write one labelled corpus from several", MERGE_EXAMPLES
    )
    merge.add_argument("corpora", nargs="+", metavar="CORPUS|PATH[:SIZE]")
    add_new_file(merge, "FILE.jsonl[.gz]")
    add_columns(merge)
    merge.add_argument("--seed", type=whole, default=0, metavar="S",
                       help="of subsets, order and stand-ins, default 0")  # fmt: skip


def run_text(arguments: argparse.Namespace) -> int:
    from edp_mx.data.lists import texts_of, tokens_of
    from edp_mx.data.origin import noted_sources
    from edp_mx.data.readers.columns_config import NONE
    from edp_mx.data.text import write_lines

    made = _made(arguments)
    made["columns"] = replace(made["columns"], slots=NONE, intent=NONE)
    read = [(source, texts_of(source, **made)) for source in arguments.sources]
    texts = chain.from_iterable(tokens_of(source, **made) for source in arguments.sources)
    lines = tqdm(map(" ".join, texts), desc="text", unit=" lines", unit_scale=True)
    with noted_sources(arguments.out, read, seed=arguments.seed):
        count = write_lines(arguments.out, lines)
    print(wrap(f"{arguments.out}  {count_of(count, 'line')} from {', '.join(arguments.sources)}"))
    return 0


def run_prompts(arguments: argparse.Namespace) -> int:
    from edp_mx.data.lists import texts_of
    from edp_mx.data.origin import noted_sources
    from edp_mx.data.prompts import is_asked_for, prompts_for
    from edp_mx.data.text import write_json_lines
    from edp_mx.data.utterance import REPLY

    made = _made(arguments)
    read = [(source, list(texts_of(source, **made))) for source in arguments.sources]
    for source, texts in read:
        if not any(map(is_asked_for, texts)):
            raise UserError(
                f"{source}: no text of two words or more that has no {REPLY} already; leave it out"
            )
    pairs = prompts_for(chain.from_iterable(texts for _, texts in read), seed=arguments.seed)
    records = ({"prompt": prompt, "reply": reply} for prompt, reply in pairs)
    records = tqdm(records, desc="prompts", unit=" lines", unit_scale=True)
    with noted_sources(arguments.out, read, seed=arguments.seed):
        count = write_json_lines(arguments.out, records)
    prompts = count_of(count, "prompt")
    print(f"{arguments.out}  {prompts} with replies from {', '.join(arguments.sources)}")
    return 0


def run_words(arguments: argparse.Namespace) -> int:
    from edp_mx.data.lists import common_words, tokens_of
    from edp_mx.data.text import write_lines

    made = _made(arguments)
    require_at_least(arguments.min_count, 1, "--min-count")
    given = [name for name in arguments.sources if Path(name).exists()]
    if given and not arguments.public:
        raise UserError(
            f"{', '.join(given)}: words of the corpus that you train on with privacy would pass "
            "for public ones; add --public if this is another corpus, which is public"
        )
    texts = (tokens for source in arguments.sources for tokens in tokens_of(source, **made))
    texts = tqdm(texts, desc="words", unit=" utterances", unit_scale=True)
    words = common_words(texts, min_count=arguments.min_count)
    if not words:
        raise UserError(f"{', '.join(arguments.sources)}: no word occurs often enough")
    count = write_lines(arguments.out, words)
    print(wrap(f"{arguments.out}  {count_of(count, 'word')} of {', '.join(arguments.sources)}"))
    return 0


def run_labels(arguments: argparse.Namespace) -> int:
    from edp_mx.data.description import describe
    from edp_mx.data.lists import labels_in, write_labels
    from edp_mx.data.sources import named_utterances

    made = _made(arguments)
    read = (u for source in arguments.sources for u in named_utterances(source, **made))
    told = describe(tqdm(read, desc="labels", unit=" utterances", unit_scale=True))
    if not told.utterances:
        raise UserError(f"{', '.join(arguments.sources)}: no utterances")
    private = [name for name in arguments.sources if Path(name).exists()]
    declared_by = "--public" if arguments.public else None
    labels = labels_in(told)
    write_labels(arguments.out, labels, private=private, declared_by=declared_by)
    marked = ', marked as "private": see `edp-mx data labels --help`'
    marked = marked if private and not arguments.public else ""
    print(
        f"{arguments.out}  {count_of(len(labels['intents']), 'intent')} and "
        f"{count_of(len(labels['slots']), 'slot')} of "
        f"{', '.join(arguments.sources)}{marked}"
    )
    return 0


def run_merge(arguments: argparse.Namespace) -> int:
    from edp_mx.data.merging import Wanted, merge

    require_at_least(arguments.seed, 0, "--seed")
    wanted = [Wanted.parse(text) for text in arguments.corpora]
    out = out_of(arguments, [each.corpus for each in wanted])
    counts = merge(wanted, out, seed=arguments.seed, columns=columns_of(arguments.columns))
    told = ", ".join(f"{label} {count:,}" for label, count in counts.items())
    print(wrap(f"{out}  {count_of(sum(counts.values()), 'utterance')}: {told}"))
    return 0


def _made(arguments: argparse.Namespace) -> Dict[str, Any]:
    """Return how stand-ins are made, and corpora read; refuse what cannot be made or written."""
    require_at_least(arguments.size, 1, "--size")
    require_at_least(arguments.seed, 0, "--seed")
    out_of(arguments, arguments.sources)
    columns = columns_of(arguments.columns)
    return {"size": arguments.size, "seed": arguments.seed, "columns": columns}
