"""The program from Python: five calls, each of which does what the command of its name does.

The commands `train` and `attack` call the work of both here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from edp_mx.data.utterance import are_words
from edp_mx.errors import UserError
from edp_mx.runtime.config_files import overrides_of

if TYPE_CHECKING:
    from edp_mx.attacks.outcomes import Outcome
    from edp_mx.attacks.request import AttackRequest
    from edp_mx.dp.accounting.guarantee import Guarantee
    from edp_mx.runs.run_directory import RunDirectory
    from edp_mx.runs.trained_run import TrainedRun
    from edp_mx.tasks.model import Answer

PathLike = Union[str, Path]
Run = Union[PathLike, "TrainedRun"]


def train(
    *configs: PathLike, settings: Optional[Mapping[str, Any]] = None, run: Optional[PathLike] = None
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
    from edp_mx.runs.lifecycle import RunRequest, carry_out

    if not configs:
        raise UserError("train: name the configuration's YAML files")
    request = RunRequest(configs, settings or {}, run_directory=run)
    return load(carry_out(request, train_and_draw)[1].path)


def train_and_draw(
    config: Any, workers: Any, directory: RunDirectory, progress: Any, parting: Any
) -> None:
    """Train in a run directory that is open, and draw its curves and its page."""
    from edp_mx.reports.curves import plot_curves
    from edp_mx.reports.run_page import write_run_page
    from edp_mx.runs.train import train

    train(config, workers, directory, progress, parting)
    if workers.is_first:
        plot_curves(directory)
        write_run_page(directory)


def load(run: PathLike) -> TrainedRun:
    """Load a finished run; it has `predict`, `score`, and `part` to read its corpus again.

    Of a folder that was exported for ONNX Runtime, what is returned has `predict` alone.

    Raises:
        UserError: the run is not there, not finished, or damaged.
    """
    from edp_mx.runs.exported.exported_model import load_model

    trained: TrainedRun = load_model(Path(run))
    return trained


def predict(
    run: Run,
    utterances: Sequence[Union[str, Sequence[str]]],
    *,
    settings: Optional[Mapping[str, Any]] = None,
) -> List[Answer]:
    """Return the answer to each utterance, such as its intent, slots and confidences.

    Args:
        run: what `load` or `train` returned, or a run directory, which is loaded each time.
        utterances: texts, which are cut by the run's `data.tokenizer`, or lists of tokens; a text
            alone is one utterance.
        settings: how it answers, as `edp-mx predict --set` says it, e.g. `{"beams": 4}`; a run that
            was loaded keeps them.
    """
    trained = load(run) if isinstance(run, (str, Path)) else run
    utterances = [utterances] if isinstance(utterances, str) else utterances
    tokens = [trained.tokens_of(u) if isinstance(u, str) else list(u) for u in utterances]
    for number, one in enumerate(tokens, start=1):
        if not are_words(one):
            raise UserError(f"utterance {number}: give a text with a word, or a list of words")
    if settings:
        trained.set_answering(overrides_of(settings))
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
    from edp_mx.attacks.request import AttackRequest

    if not (lira is None or isinstance(lira, int)):
        raise UserError(f"lira is {lira!r}; give the number of shadow models")
    request = AttackRequest(
        _path(run),
        shadow=None if shadow is None else [str(shadow)],
        lira=lira,
        canaries=canaries,
        overrides=settings or {},
    )
    return {outcome["attack"]: outcome for outcome in attack_and_draw(request)}


def attack_and_draw(request: AttackRequest) -> Iterator[Outcome]:
    """Yield the outcome of each attack on a run when its page is written, and the run's anew."""
    from edp_mx.attacks.directory import attack_folder
    from edp_mx.attacks.outcomes import outcomes
    from edp_mx.reports.attack_page import write_report
    from edp_mx.reports.exposure_page import write_exposure_report
    from edp_mx.reports.run_page import write_run_page
    from edp_mx.runs.run_directory import RunDirectory
    from edp_mx.runtime.files import keep_private
    from edp_mx.runtime.progress import start_logging

    run = RunDirectory.existing(request.path)
    if not run.has("results"):
        raise UserError(f"{run.path} is not finished: there is no model to attack yet")
    start_logging(is_first=True)
    keep_private()  # scores say who is in the training part
    for outcome in outcomes(request):
        name = outcome["attack"]
        write = write_exposure_report if name == "canaries" else write_report
        write(attack_folder(run, name))
        write_run_page(run)
        yield outcome


def _path(run: Run) -> Path:
    if not isinstance(run, (str, Path)) and not hasattr(run, "run"):
        raise UserError("an export has neither ledger nor corpus: name the run that it was made of")
    return Path(run) if isinstance(run, (str, Path)) else run.run.path
