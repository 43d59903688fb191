"""What several trainings on one corpus spend together, utterance by utterance or user by user."""

from __future__ import annotations

import logging
import os
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Dict, FrozenSet, Hashable, List, NamedTuple, Optional, Sequence, Set

from edp_mx.config import ExperimentConfig, load_config
from edp_mx.data.config import DataConfig
from edp_mx.data.sources import find_corpus, is_made
from edp_mx.data.text import digest, is_large_share
from edp_mx.data.utterance import Utterance, texts_of
from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.coverage import PRIVATE_INPUTS
from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.dp.accounting.together import count_together
from edp_mx.dp.checkpoint_file import place_of
from edp_mx.errors import UserError
from edp_mx.runs.interrupted import has_begun
from edp_mx.runs.record_files import is_run
from edp_mx.runs.recount import guarantee_ahead, recount
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.spending import RunSpending
from edp_mx.runs.trained_run import read_part

logger = logging.getLogger(__name__)


class Said(NamedTuple):
    """What somebody said: the user, "" if none, and hashes of the text and of where it was read.

    The text is the same in a copy of a corpus, the place is if other columns of it are read. The
    text of what has long parts is the last of these, such as a reply, whatever its prompt is there.
    """

    user: str
    text: int
    place: int


@dataclass(frozen=True)
class Spender:
    """A training, and its training part.

    Attributes:
        part: None where the corpus cannot be read, so that any record may be in it.
    """

    name: str
    spent: Guarantee
    part: Optional[FrozenSet[Said]]

    @property
    def is_of_users(self) -> bool:
        return self.spent.release.clips.is_user

    @cached_property
    def _users_texts_places(self) -> List[FrozenSet[Hashable]]:
        return list(map(frozenset, zip(*self.part or ()))) or [frozenset()] * 3

    def holds(self, said: Said) -> bool:
        """Return whether what somebody said is of one of its records: a user, or an utterance."""
        users, texts, places = self._users_texts_places
        if self.is_of_users and said.user:
            return said.user in users or said.place in places
        return said.text in texts or said.place in places

    def may_be_of_the_users_of(self, other: Spender) -> bool:
        """Return whether the users of another training may be ours by other names.

        They may if no name is in both, but so many texts that the two count as the same corpus.
        """
        if not (self.is_of_users and other.is_of_users):
            return False
        (users, texts, _), (others, said, _) = self._users_texts_places, other._users_texts_places
        is_same = is_large_share(len(texts & said), min(len(texts), len(said)))
        return is_same and not (users & others) - {""}

    def shares_with(self, other: Spender) -> bool:
        """Return whether some record may be in both."""
        if self.part is None or other.part is None:
            return True
        if any(map(self.holds, other.part)) or any(map(other.holds, self.part)):
            return True
        return self.may_be_of_the_users_of(other)


class Together(NamedTuple):
    """Records that are in the same trainings, how many they are (None: unknown), and their ε."""

    names: Sequence[str]
    num_records: Optional[int]
    bound: Bound


def spenders_below(paths: Sequence[Path]) -> List[Spender]:
    """Return the trainings with a ledger in folders, or below them, by their paths.

    One without a mechanism has no ledger and is left out, with a remark: what it shows is not
    protected at all.

    Raises:
        UserError: a folder has none, or a ledger cannot be read.
    """
    found: Dict[Path, Spender] = {}
    for path in paths:
        runs = _with_ledger_in(path) if path.is_dir() else []
        found.update({run.path.resolve(): spender_of(run) for run in runs})
        if not runs:
            raise UserError(f"{path} has no run with a {RunDirectory(path).ledger.name} in it")
    return [found[path] for path in sorted(found)]


def _with_ledger_in(path: Path) -> List[RunDirectory]:
    """The trainings with a ledger in a folder or below it; a remark on runs without a mechanism.

    None is overlooked: links are followed, and files beside a training do not hide it. Nothing
    inside a training counts.
    """
    found: List[RunDirectory] = []
    seen: Set[Path] = set()
    for name, folders, files in os.walk(path, followlinks=True, onerror=_refuse_unreadable):
        run, place = RunDirectory(Path(name)), Path(name).resolve()
        is_new = place not in seen
        seen.add(place)
        if is_new and run.ledger.name in files:
            found.append(run)
        elif is_new and is_run(files) and has_begun(run):
            _remark_on_unprotected(run)
        elif is_new:
            folders.sort()
            continue
        folders.clear()
    return found


def _refuse_unreadable(error: OSError) -> None:
    raise UserError(
        f"{error.filename} cannot be read ({error.strerror}), so that nobody knows which trainings "
        "are in it: make it readable, or move it elsewhere"
    )


def _remark_on_unprotected(run: RunDirectory) -> None:
    """Remark on a run without a mechanism; refuse one that has lost its ledger."""
    privacy = run.written().privacy
    if privacy is not None and privacy.mechanism != "none":
        raise UserError(
            f"{run.path} has lost its {run.ledger.name}, and nobody knows what it spent: bring the "
            "file back from a copy, or move the run elsewhere if nobody is ever shown it"
        )
    logger.warning(
        "%s was trained without a mechanism: if it is shown to anyone, no ε holds", run.path
    )


def spender_of(run: RunDirectory, *, is_running: bool = False) -> Spender:
    """Return a training with a ledger, and what it has released; while it runs, all that it may."""
    account = recount(run)
    spent = account.spent
    if is_running:
        spent = guarantee_ahead(account.ledger.plan, account.ledger.entries)
    try:
        config = load_config(run.config)
        part = said_in(read_part(run, config, "train"), config.data)
    except UserError as error:
        logger.warning(
            "%s counts as if it held the records of all others: its training part cannot be read "
            "(%s)",
            run.path,
            error,
        )
        return Spender(str(run.path), spent, None)
    return Spender(str(run.path), spent, part)


def said_in(part: Sequence[Utterance], data: DataConfig) -> FrozenSet[Said]:
    """Return who said each utterance of a part of a corpus, what, and where it was read."""
    corpus = f"{data.corpus} {data.split_seed}" if is_made(data) else find_corpus(data).resolve()
    return frozenset(
        Said(one.user or "", digest(texts_of(one.tokens)[-1]), hash((corpus, one.id)))
        for one in part
    )


def count_by_record(spenders: Sequence[Spender], *, delta: float) -> List[Together]:
    """Return the ε of the records that are in most trainings, the largest first.

    A record is a user where all trainings protect users, and an utterance otherwise: it is in a
    training of users if its user is. Records in trainings that are all among those of another
    record are left out: their ε is smaller.

    Raises:
        UserError: a record is in trainings that protect users and in others that do not.
    """
    by_user = all(spender.is_of_users for spender in spenders)
    holders: Dict[Hashable, Set[int]] = {}
    texts: Dict[int, int] = {}  # by the place: one of those that were read there
    renamed = [
        [i for i, other in enumerate(spenders) if each.may_be_of_the_users_of(other)]
        for each in spenders
    ]
    for said in set().union(*(spender.part or () for spender in spenders)):
        text = texts.setdefault(said.place, said.text)
        places = [place for place, spender in enumerate(spenders) if spender.holds(said)]
        found_in = holders.setdefault(said.user if by_user and said.user else text, set())
        found_in.update(places, *(renamed[place] for place in places))
    unknown = {place for place, spender in enumerate(spenders) if spender.part is None}
    counts = Counter(frozenset(found_in | unknown) for found_in in holders.values())
    if not counts:
        counts = Counter({frozenset(unknown): 0})
    largest = [key for key in counts if not any(key < other for other in counts)]
    found = [_together([spenders[i] for i in sorted(key)], counts[key], delta) for key in largest]
    return sorted(found, key=lambda each: -each.bound.epsilon.log)


def refuse_overdraft(
    config: ExperimentConfig, run: RunDirectory, spending: RunSpending, part: Sequence[Utterance]
) -> None:
    """Refuse a training that would spend too much of its corpus, with those in the same folder.

    Args:
        config: its `privacy.corpus_budget` is the ε that any record may lose in all of them
            together, at the δ of this run; None for no limit.
        spending: of the run, which has released nothing yet, or goes on from its checkpoint.
        part: its training part.
    """
    budget = config.privacy.corpus_budget
    if budget is None:
        return
    planned, own = spending.planned(*place_of(run.checkpoint)), run.path.resolve()
    runs = [each for each in _with_ledger_in(own.parent) if each.path.resolve() != own]
    others = [spender_of(each, is_running=each.is_in_use()) for each in runs]
    this = Spender(str(run.path), planned, said_in(part, config.data))
    mine = [each for each in others if each.shares_with(this)]
    for other in mine:
        plan = other.spent.plan
        for name in set(plan.private_inputs) - set(plan.assumed_public):
            raise UserError(
                f"privacy.corpus_budget: {other.name}, in the same folder, has ε = ∞, because "
                f"{PRIVATE_INPUTS[name].reason}; move it elsewhere if nobody is ever shown it"
            )
    found = count_by_record([this, *mine], delta=planned.plan.delta)
    worst = next(each for each in found if this.name in each.names)  # the largest comes first
    if not worst.bound.is_within(budget):
        before = ", ".join(name for name in worst.names if name != this.name) or "no other run"
        raise UserError(
            f"privacy.corpus_budget: this run and those before it on the same {planned.plan.record}"
            f"s ({before}) would have ε = {worst.bound.epsilon.in_words()} together, which is more "
            f"than {budget:g}; train fewer epochs, with more noise, or on others"
        )


def _together(spenders: Sequence[Spender], count: int, delta: float) -> Together:
    bound = count_together([each.spent for each in spenders], delta=delta)
    is_known = all(each.part is not None for each in spenders)
    return Together([each.name for each in spenders], count if is_known else None, bound)
