"""A dry run: the data that a configuration would train on, and the ε that it would spend."""

from __future__ import annotations

from typing import List, Optional

from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.fingerprint import fingerprint
from edp_mx.data.sources import find_corpus, is_made, refuse_private_lists
from edp_mx.data.splits import PARTS
from edp_mx.data.users import users_of
from edp_mx.dp.accounting.budget import refuse_unaffordable
from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.dp.accounting.ledger import Ledger, read_ledger, refuse_other_plan
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.samplers import sizes_of
from edp_mx.dp.accounting.units import UNITS
from edp_mx.dp.checkpoint_file import place_of
from edp_mx.errors import UserError
from edp_mx.runs.ancestors import brought_along
from edp_mx.runs.build import model_without_values, start_for, vocabulary_for
from edp_mx.runs.interrupted import refuse_other_workers, resumes_with
from edp_mx.runs.ledger_evidence import Evidence
from edp_mx.runs.plan import plan_for, sampler_for
from edp_mx.runs.recount import guarantee_ahead
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.start_of_run import has_started, refuse_other_start
from edp_mx.runtime.blas import Processor
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.precision import why_imitated
from edp_mx.runtime.progress import Progress, no_progress


def check_files(
    config: ExperimentConfig, num_workers: int, resumed: Optional[RunDirectory] = None
) -> None:
    """Refuse absent files, a ledger that was cut and products that the processor lacks.

    Neither the corpus nor the words are read, and no ε is counted: see `check`.
    """
    check_numbers(config, num_workers)
    if config.privacy.mechanism != "none":
        way = CLIPPINGS[config.privacy.clipping or ""]
        imitated = why_imitated(way.precision, Processor.read())
        if imitated:
            raise UserError(f"privacy.clipping: {imitated}; set it to ghost")
    refuse_private_lists(config.data)
    if not is_made(config.data):
        find_corpus(config.data)
    if resumed is not None and config.privacy.mechanism != "none":
        _ledger_of(resumed)


def check_numbers(config: ExperimentConfig, num_workers: int) -> None:
    """Refuse a batch that these workers cannot share."""
    sizes_of(
        config.privacy.sampler,
        batch_size=config.training.batch_size,
        num_workers=num_workers,
        micro_batches_per_worker=config.privacy.micro_batches_per_worker,
        sample_rate=1.0,  # it has no say: n is not known yet
        steps_per_epoch=config.training.steps_per_epoch,
    )


def _ledger_of(run: RunDirectory) -> Optional[Ledger]:
    """The ledger that a resumed run goes on with, if there is one."""
    evidence = Evidence.of(run)
    evidence.refuse_absent()
    ledger = read_ledger(run.ledger) if run.ledger.exists() else None
    if ledger is not None:
        evidence.refuse_cut(ledger)
    return ledger


def check(
    config: ExperimentConfig,
    num_workers: int,
    resumed: Optional[RunDirectory] = None,
    progress: Progress = no_progress,
) -> List[str]:
    """Read the corpus, words and labels of a run, plan it, and report the sizes and its ε.

    The model gets no values, and nothing is released. The ε is that of a run which nothing
    interrupts: all that is planned, as far as its budget allows.

    Args:
        resumed: the run that would go on, of which all that its ledger has is counted besides.

    Raises:
        UserError: as the run itself would before it builds its model.
    """
    if resumed is not None:
        refuse_other_workers(resumed, num_workers)
    corpus = load_corpus(config.data, progress=progress)
    vocabulary = vocabulary_for(config, corpus, start_for(config))
    model_without_values(config, vocabulary)  # refuses what it cannot be
    sampler = sampler_for(
        config,
        len(corpus.train),
        rank=0,
        num_workers=num_workers,
        users=users_of(corpus.train) if UNITS[config.privacy.unit or ""].is_user else None,
        lengths=[len(utterance.tokens) for utterance in corpus.train],
    )
    brought = brought_along(config, corpus)
    plan = plan_for(config, corpus, vocabulary, sampler, num_workers, brought=brought)
    lines = [
        f"{corpus.name}: {len(corpus.train):,} training, {len(corpus.validation):,} validation, "
        f"{len(corpus.test):,} test utterances",
        f"counted for {count_of(num_workers, 'worker')}",
    ]
    if resumed is None:
        refuse_unaffordable(plan)
        return [*lines, guarantee_ahead(plan).describe()]
    if has_started(resumed):
        prints = {part: fingerprint(getattr(corpus, part)) for part in PARTS}
        refuse_other_start(resumed, fingerprints=prints, vocabulary=vocabulary.to_json())
    return [*lines, resumes_with(resumed), _ahead(plan, resumed).describe()]


def _ahead(plan: Plan, run: RunDirectory) -> Guarantee:
    """The total ε of a resumed run, whose ledger must be of this plan."""
    if plan.release is None:
        return guarantee_ahead(plan)
    ledger = _ledger_of(run)
    spent = () if ledger is None else ledger.entries
    if ledger is not None:
        refuse_other_plan(run.ledger, ledger, plan)
        plan = ledger.plan  # with the α and the declarations that it was begun with
    if all(entry.epoch is None for entry in spent):
        refuse_unaffordable(plan, spent)
    epoch, step = place_of(run.checkpoint)
    return guarantee_ahead(plan, spent, first_epoch=epoch, first_step=step)
