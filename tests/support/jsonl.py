"""Writes utterances and other records as JSON lines, for what reads them."""

import json
from dataclasses import replace

from edp_mx.data.synthetic import make_utterances
from edp_mx.data.text import write_json_lines


def write_records(path, records):
    """The path, to which each record is written on a line."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def write_jsonl(path, utterances):
    """One line per utterance, plain or `.gz`."""
    write_json_lines(path, (utterance.to_json() for utterance in utterances))


def users_corpus(path, *, size, users):
    """Writes that many utterances of the Communication stand-in, said by so many users."""
    utterances = make_utterances("communication", size=size, seed=1)
    write_jsonl(path, [replace(u, user=f"user {i % users}") for i, u in enumerate(utterances)])
    return path
