"""Writes utterances and other records as JSON lines, for what reads them."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

from edp_mx.data.synthetic import make_utterances


def write_records(path, records):
    """The path, to which each record is written on a line."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def write_jsonl(path, utterances):
    """One line per utterance, plain or `.gz`; an id and a user where there is one."""
    lines = []
    for utterance in utterances:
        record = {
            "tokens": utterance.tokens,
            "slots": utterance.slots,
            "intent": utterance.intent,
            "id": utterance.id,
            "user": utterance.user,
        }
        for key in ("id", "user"):
            if not record[key]:
                del record[key]
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    content = "".join(lines).encode()
    Path(path).write_bytes(gzip.compress(content) if str(path).endswith(".gz") else content)


def users_corpus(path, *, size, users):
    """Writes that many utterances of the Communication stand-in, said by so many users."""
    utterances = make_utterances("communication", size=size, seed=1)
    write_jsonl(path, [replace(u, user=f"user {i % users}") for i, u in enumerate(utterances)])
    return path
