"""Writes utterances as JSON lines, for what reads them."""

import gzip
import json
from pathlib import Path


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
