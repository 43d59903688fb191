"""Which plan `account` and `calibrate` count: a configuration, its usual keys, and its sizes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Optional, Sequence, Tuple

from edp_mx.cli.console import add_overrides, require_at_least, whole, written_as
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.samplers import SAMPLERS
from edp_mx.errors import UserError

# Options that are short for `--set KEY=…`.
KEYS = {
    "noise_multiplier": ("privacy.noise_multiplier", "Z", "z0, of the first epoch"),
    "target_epsilon": ("privacy.target_epsilon", "E", "epsilon that is to hold"),
    "mechanism": ("privacy.mechanism", "NAME", "edp_sgd (the default) or dp_sgd"),
    "sampler": ("privacy.sampler", "NAME", "shuffle (the default) or poisson"),
    "delta": ("privacy.delta", "D", "delta (1/(2n))"),
    "epochs": ("training.epochs", "T", "epochs in all"),
    "batch_size": ("training.batch_size", "B", "utterances (or users) per step, all workers"),
}
SIZES = ("num_examples", "sample_rate", "workers", "layer_scales")
# Without a configuration, every number that ε depends on must be given; none has a default.
_NEEDED = ("privacy.noise_multiplier", "privacy.target_epsilon"), ("training.epochs",)
_EXCLUDE = {"noise_multiplier": "target_epsilon", "target_epsilon": "noise_multiplier"}


def add_layer_scales(parser: argparse.ArgumentParser, **how: Any) -> None:
    """Declare `--layer-scales`, whose α are taken as they are."""
    parse = written_as("1,0.5", lambda text: tuple(map(float, text.split(","))))
    parser.add_argument("--layer-scales", type=parse, metavar="A1,A2,...", **how)


def add_plan_options(parser: argparse.ArgumentParser, *keys: str) -> None:
    """Declare `--set`, the sizes that no configuration has, and options for some of its keys."""
    add = parser.add_argument
    add_overrides(parser, "privacy.variant=published privacy.adjacency=zero_out")
    for name in keys:
        key, metavar, meaning = KEYS[name]
        add(f"--{name.replace('_', '-')}", metavar=metavar, help=f"{meaning} ({key})")
    add("--num-examples", type=whole, metavar="n", help="size of the training part")
    add("--sample-rate", type=written_as("0.01", float), metavar="q",
        help="of poisson, in place of --batch-size: q = B / n")  # fmt: skip
    add("--workers", type=whole, metavar="N", help="workers with their own noise (1)")
    add_layer_scales(parser, help="alpha of each layer, e.g. norms (by default the largest is 1)")


def plan_of(arguments: argparse.Namespace, files: Sequence[Path]) -> Tuple[Plan, Optional[float]]:
    """Return the plan that the configuration, `--set` and the options describe, and its target ε.

    Raises:
        UserError: something is missing or impossible; a key is named as by `train`.
    """
    from edp_mx.runs.early_plan import load_planned, plan_of_config

    given = {name: getattr(arguments, name, None) for name in KEYS}
    given = {name: value for name, value in given.items() if value is not None}
    texts = list(arguments.overrides)
    is_set = {text.partition("=")[0].strip() for text in texts}
    for name, value in given.items():
        if KEYS[name][0] in is_set:
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option} and --set {KEYS[name][0]} say the same: give one of them")
        if name in _EXCLUDE:  # the keys of a file
            texts.append(f"privacy.{_EXCLUDE[name]}=null")
        texts.append(f"{KEYS[name][0]}={value}")
    if not files:
        _refuse_missing(texts)
    rate = arguments.sample_rate
    if rate is not None and "batch_size" in given:
        raise UserError("--sample-rate and --batch-size say the same (q = B / n): give one of them")
    config = load_planned(files, texts)
    _refuse_sizes(config, arguments)
    workers = 1 if arguments.workers is None else arguments.workers
    require_at_least(workers, 1, "--workers")
    plan = plan_of_config(
        config,
        num_workers=workers,
        num_examples=arguments.num_examples,
        sample_rate=rate,
        layer_scales=arguments.layer_scales,
    )
    return plan, config.privacy.target_epsilon


def delta_of(text: str) -> float:
    """Read `--delta` of a RUN as its key."""
    from edp_mx.runs.early_plan import load_planned

    return load_planned((), [f"privacy.delta={text}"]).privacy.delta


def _refuse_missing(texts: Sequence[str]) -> None:
    """Refuse settings that leave open how much noise there is, and for how long."""
    names = {text.partition("=")[0].strip() for text in texts if not text.endswith("=null")}
    for keys in _NEEDED:
        if not names & {*keys, keys[0].partition(".")[0]}:
            raise UserError(
                f"give a CONFIG, or at least {' or '.join(keys)} as an option or with --set"
            )


def _refuse_sizes(config: Any, arguments: argparse.Namespace) -> None:
    """Refuse a rate where nothing is drawn at random, and draws without their rate."""
    n, rate, sampler = arguments.num_examples, arguments.sample_rate, config.privacy.sampler
    by_chance = SAMPLERS[sampler].by_chance
    if not by_chance and rate is not None:
        raise UserError(
            "--sample-rate belongs to --sampler poisson: shuffled epochs cost the same however "
            "many steps they have, and sampling does not amplify them"
        )
    if by_chance and rate is None and n is None:
        raise UserError(
            f"--sampler {sampler} needs --num-examples, from which q = B / n follows, or "
            "--sample-rate"
        )
    if n is None and config.privacy.delta is None and config.privacy.delta_mode == "default":
        raise UserError("give --delta, or --num-examples for delta = 1/(2n)")
