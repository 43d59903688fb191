"""Training parts of the shadow models of LiRA: `RUN/attack-lira/plan.npz`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np

from edp_mx.attacks.membership.lira.likelihood import draw_further, draw_halves
from edp_mx.attacks.membership.scores import MembershipScores
from edp_mx.config import ExperimentConfig, dump_config
from edp_mx.data.corpus import Corpus, load_corpus
from edp_mx.data.strata import folded_text
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.weights import write_arrays
from edp_mx.errors import UserError
from edp_mx.runs.file_types import SplitIds
from edp_mx.runs.record import NO_EFFECT
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_text
from edp_mx.runtime.json_text import parse_json
from edp_mx.runtime.npz import read_arrays
from edp_mx.runtime.yaml_tree import leaves, load


@dataclass(frozen=True, eq=False)
class ShadowPlan:
    """Training part of each shadow, with about as many utterances as the run's.

    Attributes:
        ids: of the utterances that are judged, (U,); each stands for all utterances with its text.
        is_in: which shadow trains on which of them, (U, K): each is in half of the shadows.
        other_ids: of further utterances of the corpus, (V,), which fill the training parts up.
        others_in: which shadow trains on which of these, (V, K).
        about: the settings that the plan was made for.
    """

    ids: Tuple[str, ...]
    is_in: np.ndarray
    other_ids: Tuple[str, ...]
    others_in: np.ndarray
    about: Dict[str, Any]

    @property
    def shadows(self) -> int:
        return int(self.is_in.shape[1])

    def part(self, corpus: Corpus, vocabulary: Vocabulary, number: int) -> List[Utterance]:
        """Return the training part of one shadow, with repeats, in the order of the corpus."""
        by_id = {utterance.id: utterance for utterance in corpus.utterances}
        ids = np.array([*self.ids, *self.other_ids])
        if not by_id.keys() >= set(ids.tolist()):
            raise UserError(f"{corpus.name} has changed since the shadows of LiRA were planned")
        is_in = np.concatenate([self.is_in[:, number], self.others_in[:, number]])
        texts = {folded_text(by_id[name]) for name in ids[is_in].tolist()}
        return [u for u in corpus.utterances if folded_text(u) in texts and is_known(u, vocabulary)]

    def write(self, folder: Path) -> None:
        arrays = {
            "ids": np.array(self.ids, dtype=str),
            "is_in": self.is_in,
            "other_ids": np.array(self.other_ids, dtype=str),
            "others_in": self.others_in,
            "about": np.array(json.dumps(self.about)),
        }
        write_arrays(folder / "plan.npz", arrays, compress=True)

    @classmethod
    def read(cls, folder: Path) -> ShadowPlan:
        path = folder / "plan.npz"
        arrays = read_arrays(path, "a plan", advice="run `edp-mx attack RUN --lira K`")
        try:
            return cls(
                tuple(arrays["ids"].tolist()),
                arrays["is_in"],
                tuple(arrays["other_ids"].tolist()),
                arrays["others_in"],
                parse_json(str(arrays["about"])),
            )
        except (KeyError, ValueError, TypeError) as error:
            raise UserError(f"{path} is of another version: remove {folder}") from error


def ensure_plan(
    folder: Path, scores: MembershipScores, config: ExperimentConfig, shadows: int
) -> ShadowPlan:
    """Write the plan of the run that `folder` lies in, or return the present plan if it is equal.

    A plan by which no shadow was trained yet is replaced; finished shadows of other settings are
    refused.
    """
    about: Dict[str, Any] = {
        "origin": asdict(scores.origin),
        "shadows": shadows,
        "config": dump_config(config),
    }
    ids = scores.judged_ids
    if (folder / "plan.npz").exists() and any(folder.glob("shadow-*.npz")):
        old = ShadowPlan.read(folder)
        if old.ids != ids or _decisive(old.about) != _decisive(about):
            raise UserError(
                f"{folder} holds shadows of other settings or another number of shadows: use the "
                "same ones, or remove the folder"
            )
        return old
    run = RunDirectory.existing(folder.parent)
    plan = _build_plan(run, ids, load_corpus(config.data), about, seed=scores.origin.seed)
    write_text(folder / "config.yaml", about["config"])
    plan.write(folder)
    return plan


def _decisive(about: Dict[str, Any]) -> Dict[str, Any]:
    """The request of a plan, without settings that have no effect."""
    settings = leaves(load(about["config"]))
    return {**about, "config": {k: value for k, value in settings if k not in NO_EFFECT}}


def _build_plan(
    run: RunDirectory, ids: Tuple[str, ...], corpus: Corpus, about: Dict[str, Any], *, seed: int
) -> ShadowPlan:
    """Draw a plan without regard to membership; only the size of the training part is known."""
    vocabulary = Vocabulary.from_json(run.read("vocabulary"))
    known = [u for u in corpus.utterances if is_known(u, vocabulary)]
    by_text: Dict[str, List[Utterance]] = {}
    for utterance in known:
        by_text.setdefault(folded_text(utterance), []).append(utterance)
    wanted = set(ids)
    judged = [group for group in by_text.values() if any(u.id in wanted for u in group)]
    others = [group for group in by_text.values() if not any(u.id in wanted for u in group)]
    missing = len(run.load(SplitIds).train) - sum(map(len, judged)) / 2
    share = min(1.0, max(0.0, missing / max(1, sum(map(len, others)))))
    return ShadowPlan(
        ids,
        draw_halves(len(ids), about["shadows"], seed=seed),
        tuple(group[0].id for group in others),
        draw_further(len(others), about["shadows"], share=share, seed=seed),
        about,
    )


def is_known(utterance: Utterance, vocabulary: Vocabulary) -> bool:
    """Return whether the model has all labels of an utterance."""
    tags = (vocabulary.slot_id(tag) for tag in utterance.slots)
    return vocabulary.intent_id(utterance.intent) >= 0 and min(tags) >= 0
