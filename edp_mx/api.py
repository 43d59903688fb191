"""The program from Python: five calls, each of which does what the command of its name does."""

from __future__ import annotations

import contextlib
import io
import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union

from edp_mx.cli import parse
from edp_mx.data.utterance import are_words
from edp_mx.errors import UserError

if TYPE_CHECKING:
    from edp_mx.accounting.guarantee import Guarantee
    from edp_mx.runs.trained import TrainedRun, Understanding

PathLike = Union[str, Path]
Run = Union[PathLike, "TrainedRun"]


def train(
    *configs: PathLike,
    settings: Optional[Mapping[str, Any]] = None,
    run: Optional[PathLike] = None,
) -> TrainedRun:
    """Train with the workers of this job, and return the trained run.

    A process that was not started as one of several is the only worker.

    Args:
        configs: YAML files; the keys of each override those of the files before it.
        settings: values by dotted key, laid over the files, e.g. `{"training.epochs": 5}`.
        run: the run directory; a new one below `runs/` if None.

    Raises:
        UserError: settings, files or a run directory that cannot be used, in one sentence.
    """
    from edp_mx.cli.train import train as train_into

    if not configs:
        raise UserError("train: name the configuration's YAML files")
    words = ["train", *map(str, configs), *([] if run is None else [f"--run={run}"])]
    return load(train_into(_arguments([*words, *_set(settings)])).path)


def load(run: PathLike) -> TrainedRun:
    """Load a finished run; it has `predict`, `score`, and `part` to read its corpus again.

    Raises:
        UserError: the run is not there, not finished, or damaged.
    """
    from edp_mx.runs.trained import load_run

    return load_run(Path(run))


def predict(run: Run, utterances: Sequence[Union[str, Sequence[str]]]) -> List[Understanding]:
    """Return intent, slots and confidences of each utterance.

    Args:
        run: what `load` or `train` returned, or a run directory, which is loaded each time.
        utterances: texts, which are cut by the run's `data.tokenizer`, or lists of tokens.
    """
    trained = load(run) if isinstance(run, (str, Path)) else run
    tokens = [trained.tokens_of(u) if isinstance(u, str) else list(u) for u in utterances]
    for number, one in enumerate(tokens, start=1):
        if not are_words(one):
            raise UserError(f"utterance {number}: give a text with a word, or a list of words")
    return trained.predict(tokens)


def account(run: Run, *, delta: Optional[float] = None) -> Guarantee:
    """Count both ε from the ledger of a run, finished or not.

    Args:
        delta: in place of the run's own.

    Returns:
        The guarantee: `as_published`, `holds` and `holds_if`, each with `epsilon`; `describe()`
        says it in words.

    Raises:
        UserError: the run was trained without privacy, or its ledger is damaged.
    """
    from edp_mx.reports.ledger_report import account_of

    return account_of(_path(run), delta=delta).spent


def attack(
    run: Run,
    *,
    shadow: Optional[PathLike] = None,
    lira: Optional[int] = None,
    canaries: bool = False,
    settings: Optional[Mapping[str, Any]] = None,
) -> Dict[str, Dict[str, Any]]:
    """Attack a finished run, and write the pages into its folder.

    Args:
        shadow: run or configuration of the shadow model of the paper's attack.
        lira: number of shadow models of LiRA, which are trained.
        canaries: whether to measure the exposure of phone numbers, by training anew.
        settings: what the models that are trained change in the settings of the run.

    Returns:
        By name of the attack ("threshold", which needs no other model, comes always) what
        `edp-mx attack --json` prints.
    """
    from edp_mx.cli.attack import attack as attacks

    words = ["attack", str(_path(run))]
    words += [] if shadow is None else [f"--shadow={shadow}"]
    words += [] if lira is None else [f"--lira={lira}"]
    words += ["--canaries"] if canaries else []
    found = attacks(_arguments([*words, *_set(settings)]))
    return {outcome["attack"]: outcome for outcome, _ in found}


def _path(run: Run) -> Path:
    return Path(run) if isinstance(run, (str, Path)) else run.run.path


def _arguments(words: List[str]) -> Namespace:
    """Parse the words of a command; what is wrong with them is the sentence of a UserError."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return parse(words)
    except SystemExit:
        raise UserError(said.getvalue().strip()) from None


def _set(settings: Optional[Mapping[str, Any]]) -> List[str]:
    """Return the option `--set`; JSON values are YAML too."""
    try:
        pairs = [
            f"{key}={json.dumps(value, ensure_ascii=False)}"
            for key, value in (settings or {}).items()
        ]
    except TypeError as error:
        raise UserError(f"settings: {error}; give numbers, texts, lists and mappings") from None
    return ["--set", *pairs] if pairs else []
