"""The settings `data.columns`: how the records of a corpus are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from edp_mx.runtime.files import path_field
from edp_mx.runtime.settings import Settings, setting

NONE = "none"  # in place of the name of what a corpus does not have, or is read without


@dataclass(frozen=True)
class ColumnsConfig(Settings):
    """The names of keys of a JSON line, or columns of a table; most other layouts have none.

    The usual names, which are the defaults below, may be in upper case; those given may not differ.
    The columns of CoNLL have numbers from 1, as in `tokens: "2"`, and its comments have names.

    Args:
        text: the one with the utterance as text; by default "text", "sentence" or
            "content".
        tokens: the one with the utterance as tokens; by default "tokens" (CoNLL: the first, or the
            second behind one that counts the tokens).
        slots: the one with the BIO tags of the tokens; by default "slots" or "ner_tags" (CoNLL: the
            last); none for a corpus without slots, in any layout. A corpus in which nothing is
            known to hold slots or spans is read without them, and a remark says so.
        spans: the one with the slots as `[{"start", "end", "label"}]`, in characters of the text;
            by default "spans".
        intent: the one with the intent, or the label of a text; by default "intent", "label" or
            "category" (CoNLL: the comment `# intent: …`); none for a corpus without labels, in any
            layout.
        second: the one with a second text, such as the hypothesis beside a premise, which follows
            the first one after the token [SEP]; by default none.
        prompt: the one with what a reply is generated from; by default "prompt". With acts (a table
            to text) or context (dialogue), DSTC8's dialogues are read for the system's turns.
        reply: the one with the reply to a prompt; by default "reply". A record with both needs
            neither a text nor slots nor an intent.
        user: the one with who said it; by default "user".
        label_names: a JSON file with the names of labels that are numbers, by key or column, such
            as `{"ner_tags": ["O", "B-who"]}`; or the `dataset_info.json` of a Hugging Face dataset.
        unbalanced: what is done with a tag I-name that continues no slot of this name, in any
            layout: repair (it becomes B-name, as conlleval reads it) or refuse.
    """

    text: Optional[str] = None
    tokens: Optional[str] = None
    slots: Optional[str] = None
    spans: Optional[str] = None
    intent: Optional[str] = None
    second: Optional[str] = None
    prompt: Optional[str] = None
    reply: Optional[str] = None
    user: Optional[str] = None
    label_names: Optional[str] = path_field()
    unbalanced: str = setting("repair", one_of=("repair", "refuse"))
