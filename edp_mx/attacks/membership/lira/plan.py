"""Which shadow model of LiRA trains on whom: `RUN/attack-lira/plan.npz`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np

from edp_mx.attacks.membership.lira.likelihood import draw_halves, draw_others
from edp_mx.attacks.membership.members import text_of
from edp_mx.attacks.membership.scores import MembershipScores, read_arrays, write_arrays
from edp_mx.config import ExperimentConfig, dump_config
from edp_mx.data.corpus import Corpus, load_corpus
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_text


@dataclass(frozen=True, eq=False)
class ShadowPlan:
    """Each shadow's training part, of about as many utterances as the run's.

    Attributes:
        ids: of the utterances that are judged.
        is_in: which shadow trains on which of them: each is in half of the shadows.
        other_ids: of further utterances of the corpus, which fill the shadows up.
        others_in: which shadow trains on which of these.
        about: what it was made from.

    Shapes: ids (U,) · is_in (U, K) · other_ids (V,) · others_in (V, K). Each stands for all
    utterances with its text.
    """

    ids: Tuple[str, ...]
    is_in: np.ndarray
    other_ids: Tuple[str, ...]
    others_in: np.ndarray
    about: Dict[str, Any]

    @property
    def shadows(self) -> int:
        """How many, K."""
        return int(self.is_in.shape[1])

    def part(self, corpus: Corpus, vocabulary: Vocabulary, number: int) -> List[Utterance]:
        """The training part of one shadow: what is in, with its repeats, in the corpus' order.

        Raises:
            UserError: the corpus has changed.
        """
        by_id = {utterance.id: utterance for utterance in corpus.utterances}
        drawn = (
            *_chosen(self.ids, self.is_in, number),
            *_chosen(self.other_ids, self.others_in, number),
        )
        if not by_id.keys() >= {*self.ids, *self.other_ids}:
            raise UserError(f"{corpus.name} has changed since the shadows of LiRA were planned")
        texts = {text_of(by_id[name]) for name in drawn}
        return [u for u in corpus.utterances if text_of(u) in texts and is_known(u, vocabulary)]

    def write(self, folder: Path) -> None:
        """Writes `plan.npz`."""
        arrays = {
            "ids": np.array(self.ids, dtype=str),
            "is_in": self.is_in,
            "other_ids": np.array(self.other_ids, dtype=str),
            "others_in": self.others_in,
            "about": np.array(json.dumps(self.about)),
        }
        write_arrays(folder / "plan.npz", arrays)

    @classmethod
    def read(cls, folder: Path) -> ShadowPlan:
        """What `write` wrote.

        Raises:
            UserError: it is missing, torn, or of another version.
        """
        path = folder / "plan.npz"
        arrays = read_arrays(path, "run `edp-mx attack RUN --lira K`")
        try:
            return cls(
                tuple(arrays["ids"].tolist()),
                arrays["is_in"],
                tuple(arrays["other_ids"].tolist()),
                arrays["others_in"],
                json.loads(str(arrays["about"])),
            )
        except (KeyError, ValueError) as error:
            raise UserError(f"{path} is no plan of this version: remove {folder}") from error


def ensure_plan(
    folder: Path, scores: MembershipScores, config: ExperimentConfig, shadows: int
) -> ShadowPlan:
    """Writes the plan for the run that `folder` lies in, or finds that it is the same as before.

    A plan by which no shadow was trained yet binds nobody: it makes way.

    Raises:
        UserError: the folder holds shadows of other settings.
    """
    about: Dict[str, Any] = {
        "origin": asdict(scores.origin),
        "shadows": shadows,
        "config": dump_config(config),
    }
    ids = tuple(scores.ids[i] for i in np.flatnonzero(scores.is_judged))
    if (folder / "plan.npz").exists() and any(folder.glob("shadow-*.npz")):
        old = ShadowPlan.read(folder)
        if (old.ids, old.about) != (ids, about):
            raise UserError(
                f"{folder} holds shadows of other settings (or of another number of them): repeat "
                "those, or remove the folder"
            )
        return old
    run = RunDirectory.existing(folder.parent)
    plan = _make_plan(run, ids, load_corpus(config.data), about, seed=scores.origin.seed)
    write_text(folder / "config.yaml", about["config"])
    plan.write(folder)
    return plan


def _make_plan(
    run: RunDirectory, ids: Tuple[str, ...], corpus: Corpus, about: Dict[str, Any], *, seed: int
) -> ShadowPlan:
    """Half of those who are judged, and of all others as many as make up the run's number.

    Nobody's membership has a say: an attacker knows of the run how large its training part is.
    """
    vocabulary = Vocabulary.from_json(run.read("vocabulary"))
    known = [u for u in corpus.utterances if is_known(u, vocabulary)]
    by_text: Dict[str, List[Utterance]] = {}
    for utterance in known:
        by_text.setdefault(text_of(utterance), []).append(utterance)
    wanted = set(ids)
    judged = [group for group in by_text.values() if any(u.id in wanted for u in group)]
    others = [group for group in by_text.values() if not any(u.id in wanted for u in group)]
    missing = len(run.read("split")["train"]) - sum(map(len, judged)) / 2
    share = min(1.0, max(0.0, missing / max(1, sum(map(len, others)))))
    return ShadowPlan(
        ids,
        draw_halves(len(ids), about["shadows"], seed=seed),
        tuple(group[0].id for group in others),
        draw_others(len(others), about["shadows"], share=share, seed=seed),
        about,
    )


def is_known(utterance: Utterance, vocabulary: Vocabulary) -> bool:
    """Whether the model has all labels of an utterance."""
    tags = (vocabulary.slot_id(tag) for tag in utterance.slots)
    return vocabulary.intent_id(utterance.intent) >= 0 and min(tags) >= 0


def _chosen(ids: Tuple[str, ...], is_in: np.ndarray, number: int) -> List[str]:
    return [ids[i] for i in np.flatnonzero(is_in[:, number])]
