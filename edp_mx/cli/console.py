"""Options, checks and printing that the subcommands share."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Optional, Sequence

from edp_mx.errors import CONTROLS, MOST_QUOTED, UserError
from edp_mx.reports.table import fit
from edp_mx.runtime.files import refuse_unwritable, remove_leftovers
from edp_mx.runtime.limits import MOST_SEED
from edp_mx.runtime.structured import unstructure


def add_command(
    subparsers: Any,
    name: str,
    run: Optional[Callable],
    summary: str,
    examples: str,
    description: Optional[str] = None,
) -> argparse.ArgumentParser:
    """Add a subcommand, or an action of one (`edp-mx data make`), and return its parser."""
    parser = subparsers.add_parser(
        name,
        help=summary,
        description=description or f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_configs(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    parser.add_argument(
        "configs",
        nargs=nargs,
        type=Path,
        metavar="CONFIG",
        help="YAML files; the keys of each override those of the files before it",
    )


def add_overrides(
    parser: argparse.ArgumentParser, example: str = "training.epochs=3 privacy.noise_multiplier=0.5"
) -> None:
    """Add `--set key.path=value`, as often as one likes."""
    parser.add_argument(
        "--set",
        dest="overrides",
        action="extend",
        nargs="+",
        type=_setting,
        default=[],
        metavar="KEY=VALUE",
        help=f"override settings, e.g. --set {example}",
    )


def _setting(text: str) -> str:
    """Read KEY=VALUE. `--set` takes all that follows it, also what was meant for the command."""
    if "=" not in text:
        raise argparse.ArgumentTypeError(
            f"{text[:MOST_QUOTED]!r} is not KEY=VALUE, e.g. training.epochs=3; what is not a "
            "setting stands before --set"
        )
    return text


def values_of(kind: type, arguments: argparse.Namespace) -> Dict[str, Any]:
    """Return the options that have the names of a dataclass's fields."""
    names = (field.name for field in dataclasses.fields(kind))
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


def add_columns(
    parser: argparse.ArgumentParser,
    name: str = "--columns",
    meaning: str = "which columns or keys hold what, e.g. text=utterance intent=category",
) -> None:
    """Add `--columns KEY=NAME …`, the settings `data.columns` of corpora that are named by path."""
    parser.add_argument(name, nargs="+", default=[], metavar="KEY=NAME", help=meaning)


def columns_of(texts: Iterable[str], settings: Any = None, option: str = "--columns") -> Any:
    """Return the settings `data.columns` that `--columns` or a like option changes."""
    from edp_mx.data.readers.columns_config import ColumnsConfig

    settings = settings or ColumnsConfig()
    known = [field.name for field in dataclasses.fields(settings)]
    changes = dict(text.partition("=")[::2] for text in texts)
    for key, name in changes.items():
        if not name or key not in known:
            raise UserError(
                f"{option} {key}={name}: write KEY=NAME, where KEY is one of {', '.join(known)}"
            )
    return dataclasses.replace(settings, **changes)


def print_json(value: Any) -> None:
    """Print a value as strict JSON (no NaN, no Infinity), indented."""
    print(json.dumps(unstructure(value), indent=2, allow_nan=False), flush=True)


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the limits of a call that trains, and `--workers`, which `workers_of` reads."""
    add_budget_hours(parser)
    add = parser.add_argument
    add("--workers-at-once", type=whole, default=1, metavar="K",
        help="trainings at the same time (1)")  # fmt: skip
    add("--workers", type=whole, metavar="NP", help="workers of each training ($NP, or 1)")


def add_budget_hours(parser: argparse.ArgumentParser) -> None:
    """Add `--budget-hours`, the time of a call that trains."""
    parser.add_argument("--budget-hours", type=hours, default=math.inf, metavar="H",
        help="no training of this call begins after so many hours")  # fmt: skip


def workers_of(arguments: argparse.Namespace, program: str) -> int:
    """Return the workers of each training of a program, which starts them itself."""
    refuse_in_job(f"{program} starts the workers itself")
    named = os.environ.get("NP") or "1"
    if arguments.workers is None and not named.isdecimal():
        raise UserError(f"NP={named}: the number of workers must be a whole number, 1 or more")
    workers = int(named) if arguments.workers is None else arguments.workers
    require_at_least(workers, 1, "--workers")
    require_at_least(arguments.workers_at_once, 1, "--workers-at-once")
    return workers


def workers_to_check(arguments: argparse.Namespace) -> Optional[int]:
    """Return the `--workers` of a check, or None; refuse it without a check: it starts none."""
    count: Optional[int] = arguments.workers
    if count is not None:
        require_at_least(count, 1, "--workers")
        if not (arguments.check or getattr(arguments, "check_files", False)):
            raise UserError(
                f"--workers goes with --check and starts none: start them by NP={count} launch/*.sh"
            )
    return count


def refuse_in_job(why: str) -> None:
    """Refuse to be one of several workers."""
    if int(os.environ.get("HOROVOD_SIZE", "1")) > 1:
        raise UserError(f"{why}: do not start it as one of several workers")


def add_wide(parser: argparse.ArgumentParser) -> None:
    """Add `--wide`, for `show`."""
    parser.add_argument(
        "--wide", action="store_true", help="leave tables and lines beyond 80 columns as they are"
    )


def show(text: str, *, is_wide: bool) -> None:
    """Print a text in 80 columns: wider tables as a block per row, longer lines wrapped."""
    print((text if is_wide else fit(text)).translate(CONTROLS), flush=True)


def tell(arguments: argparse.Namespace, value: Callable[[], Any], text: Callable[[], str]) -> int:
    """Print the findings of a command, as JSON with --json; return its exit code.

    A command without --wide makes lines of the right width itself.
    """
    if arguments.json:
        print_json(value())
    else:
        show(text(), is_wide=getattr(arguments, "wide", True))
    return 0


def written_as(example: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return the type of an option that shows an example where `parse` raises a ValueError."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r} cannot be read; write for example {example}"
            ) from None

    return read


def whole(text: str) -> int:
    """Read an option that is a whole number: the type in place of `int`, which knows no limit."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid int value: {text[:MOST_QUOTED]!r}") from None
    if abs(value) > MOST_SEED:
        raise argparse.ArgumentTypeError(f"it must be at most {MOST_SEED:,}")
    return value


def hours(text: str) -> float:
    """Read an option that is a time above zero, in hours."""
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"it is {value:g}; it must be above 0")
    return value


def refuse_other_than_png(path: Optional[Path], name: str) -> None:
    """Refuse a picture that is no .png; its numbers are written beside it as a .csv."""
    if path is not None and path.suffix != ".png":
        raise UserError(f"{name} is {path}; name a file that ends in .png")


def require_at_least(value: int, least: int, name: str) -> None:
    """Refuse a smaller number."""
    if value < least:
        raise UserError(f"{name} is {value}; it must be {least} or more")


def require_above_zero(value: float, name: str) -> None:
    """Refuse a value that is not a finite number above 0."""
    if not 0 < value < float("inf"):
        raise UserError(f"{name} is {value:g}; it must be finite and above 0")


def add_new_file(parser: argparse.ArgumentParser, metavar: str) -> None:
    """Add --out, which `out_of` reads, and --force."""
    parser.add_argument("--out", type=Path, required=True, metavar=metavar)
    parser.add_argument("--force", action="store_true", help="write over a file that is there")


def out_of(arguments: argparse.Namespace, sources: Sequence[str], option: str = "--out") -> Path:
    """Return the new file, if it can be written, and nothing is there or --force was given.

    It must not be one of the sources.
    """
    out: Path = arguments.out
    if not arguments.force:
        refuse_existing(out, option=option)
    for source in sources:
        place = Path(source).resolve()
        if out.exists() and place in (out.resolve(), *out.resolve().parents):
            raise UserError(
                f"{option} is {out}, which is read as a part of {source}: name another file "
                "(nothing was changed)"
            )
    refuse_unwritable(out)
    return out


def refuse_existing(*files: Path, option: str = "--out") -> None:
    """Refuse to write over files."""
    for path in files:
        if path.exists():
            raise UserError(
                f"{path} is there already; name another file with {option}, or write over it with "
                "--force (nothing was changed)"
            )


def refuse_filled(folder: Path) -> None:
    """Refuse to write into a folder that holds anything, or over a file."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        found = "holds files already" if folder.is_dir() else "is a file"
        raise UserError(f"{folder} {found}; name a new folder with --out (nothing was changed)")


def refuse_foreign(folder: Path, ours: Iterable[str]) -> None:
    """Refuse to write into a folder that holds other files than ours; remove a killed call's."""
    ours = tuple(ours)
    remove_leftovers(folder, ours)
    if folder.exists() and not (
        folder.is_dir() and {path.name for path in folder.iterdir()} <= {*ours}
    ):
        raise UserError(f"{folder} holds something else; name a new folder with --out")
