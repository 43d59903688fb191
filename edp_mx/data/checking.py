"""A corpus read to its end whatever is wrong in it: all errors, and the sound utterances."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional, Set

from edp_mx.data.ids import digest_of
from edp_mx.data.origin import beside, origins_beside, write_origin
from edp_mx.data.readers import stream_utterances
from edp_mx.data.readers.assembly import Assembler
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.readers.record_errors import RecordErrors
from edp_mx.data.text import write_json_lines
from edp_mx.data.users import HOW_TO_NAME
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.files import PathLike
from edp_mx.runtime.progress import Progress, no_progress

MOST_NAMED = 50  # errors


class _CutShort(Exception):
    """Some utterances were not read, so that nothing is written."""


@dataclass
class Findings:
    """What reading a corpus to its end has found.

    Attributes:
        parts: how many sound utterances each part has.
        intents, slots, users: names among the sound utterances.
        unnamed: sound utterances without a user.
        errors: the first `MOST_NAMED`, each a sentence with its place.
        num_errors: how many there are.
        left_out: records with an error.
        unread: files that could not be read to their end, so that nobody knows how many of their
            utterances are missing.
        is_written: whether the sound utterances were written.
    """

    parts: Dict[str, int] = field(default_factory=Counter)
    intents: Set[str] = field(default_factory=set)
    slots: Set[str] = field(default_factory=set)
    users: Set[str] = field(default_factory=set)
    unnamed: int = 0
    errors: List[str] = field(default_factory=list)
    num_errors: int = 0
    left_out: int = 0
    unread: int = 0
    is_written: bool = False

    @property
    def utterances(self) -> int:
        """How many utterances are sound."""
        return sum(self.parts.values())

    def add(self, part: str, utterance: Utterance) -> None:
        """Count a sound utterance."""
        self.parts[part] += 1
        self.intents.add(utterance.intent)
        self.slots.update(tag[2:] for tag in utterance.slots if tag != "O")
        if utterance.user:
            self.users.add(utterance.user)
        else:
            self.unnamed += 1

    def note(self, error: UserError) -> None:
        """Note what is wrong with the corpus as a whole."""
        self.num_errors += 1
        if len(self.errors) < MOST_NAMED:
            self.errors.append(str(error))

    def note_record(self, error: UserError) -> None:
        """Note the error of a record, which is left out."""
        self.note(error)
        self.left_out += 1

    def note_file(self, error: UserError) -> None:
        """Note an error that ended the reading of its file."""
        self.note(UserError(f"{error}; what follows it in this file was not read"))
        self.unread += 1


def check(
    path: PathLike,
    *,
    columns: Optional[ColumnsConfig] = None,
    out: Optional[PathLike] = None,
    progress: Progress = no_progress,
) -> Findings:
    """Read a corpus and find all its errors.

    Args:
        columns: which keys or columns hold what; by default the usual ones.
        out: a .jsonl or .jsonl.gz file for the sound utterances. It is written whole, or not at
            all where a file could not be read to its end, or some users are not named.

    Raises:
        UserError: the corpus is not there or in no known layout; or it has several parts, which
            `out` would join.

    Edge cases: of several utterances with one id the first counts as sound. An id takes about 60
        bytes of memory. Two ids with the same 64 bits of a hash would count as equal.
    """
    findings = Findings()
    sound = progress(_sound(path, columns, findings, is_one_part=out is not None), "reading", None)
    if out is None:
        for _ in sound:
            pass
        return findings
    line = origins_beside(path)
    if line or beside(out).exists():  # what a merged corpus was made of stays known
        write_origin(beside(out), line)
    with suppress(_CutShort):
        write_json_lines(out, map(Utterance.to_json, sound))
        findings.is_written = True
    return findings


def _sound(
    path: PathLike, columns: Optional[ColumnsConfig], findings: Findings, *, is_one_part: bool
) -> Iterator[Utterance]:
    """Yield the sound utterances, and note all else in the findings."""
    assembler = Assembler(
        columns, RecordErrors(findings.note_record), RecordErrors(findings.note_file, is_last=True)
    )
    ids: Set[int] = set()
    for part, utterance in stream_utterances(path, assembler=assembler):
        if is_one_part and len({part, *findings.parts}) > 1:
            raise UserError(
                f"{path} has several parts, which one file would join: check each of its files "
                "by itself"
            )
        digest = digest_of(utterance.id)
        if digest in ids:
            error = UserError(f"{path}: the id {utterance.id!r} occurs again; ids must be unique")
            findings.note_record(error)
            continue
        ids.add(digest)
        findings.add(part, utterance)
        yield utterance
    is_mixed = bool(findings.users and findings.unnamed)
    if is_mixed:
        findings.note(
            UserError(
                f"{path}: no user is named for {count_of(findings.unnamed, 'utterance')}, though "
                f"for others; users are named for all utterances or for none: {HOW_TO_NAME}"
            )
        )
    if is_one_part and (findings.unread or is_mixed):
        raise _CutShort
