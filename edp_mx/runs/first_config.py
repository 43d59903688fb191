"""The first configuration of a corpus of one's own, which `edp-mx init` writes."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Dict, NamedTuple, Optional, Tuple

import numpy as np
from jinja2 import Environment, StrictUndefined

from edp_mx.config import load_config
from edp_mx.data.config import PUBLIC_CORPORA, DataConfig, SplitConfig
from edp_mx.data.corpus import Corpus, load_corpus
from edp_mx.data.encoding import MAX_PIECES
from edp_mx.data.readers import has_own_split
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.splits import PARTS
from edp_mx.data.synthetic import STANDINS
from edp_mx.data.users import HOW_TO_NAME, names_users, users_of
from edp_mx.dp.accounting.choices import choose_delta
from edp_mx.dp.accounting.units import UNITS
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.huggingface import CONFIG
from edp_mx.models.registry import family_in
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.progress import Progress, no_progress
from edp_mx.runtime.yaml_tree import quoted, read_layers
from edp_mx.tasks.task import Task

_TEMPLATE = Path(__file__).with_name("first_config.yaml.jinja")
_PLAIN = re.compile(r"[\w./-]+")  # a text that YAML reads alike without quotation marks
_SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}
_FAMILY = "clc"  # of a model that starts from random weights
_WORKERS = 8  # a batch is a multiple of it, so that 1, 2, 4 or 8 workers divide it


class Recipe(NamedTuple):
    """The recipe for a family, as docs/recipe.md and docs/generation.md measured it.

    Attributes:
        what: is trained, in words.
        files: that are included.
        share: B ÷ n.
        epochs: where that share is the batch, and where the largest batch is.
        largest_batch: that was measured.
        without_privacy: what is laid over it for the same without privacy.
        page: of the documentation.
    """

    what: str
    files: Tuple[str, ...]
    share: float
    epochs: Tuple[int, int]
    largest_batch: int = 4096
    without_privacy: str = "configs/recipe/without_privacy.yaml"
    page: str = "docs/recipe.md"


_FINE_TUNING = "configs/model/bert_fine_tuning.yaml"
_BERT = Recipe(
    "The heads of a BERT", (_FINE_TUNING, "configs/recipe/heads.yaml"), 1 / 3, (220, 220)
)
RECIPES = {
    "bert": _BERT,
    "encoder": _BERT._replace(
        what="The heads of a public encoder", files=(_FINE_TUNING, "configs/recipe/encoder.yaml")
    ),
    "clc": Recipe(
        "A small CLC", ("configs/model/clc.yaml", "configs/recipe/clc.yaml"), 1 / 4, (60, 20)
    ),
    "gpt2": Recipe(
        "The whole of a GPT-2",
        ("configs/causal_lm/private.yaml",),
        1 / 3,
        (30, 10),
        1024,
        "configs/mechanism/sgd.yaml --set training.batch_size=32",
        "docs/generation.md",
    ),
}


@dataclass(frozen=True)
class Start:
    """The start of a model, as `model.start_from` names it, with the sizes of a checkpoint."""

    folder: Path
    family: str
    num_layers: Optional[int] = None
    max_positions: Optional[int] = None

    @classmethod
    def of(cls, folder: Path, corpus: Path) -> Start:
        """Look at a finished run, or at a BERT or a GPT-2 in Hugging Face's layout.

        Raises:
            UserError: it is neither, or the run was trained on the corpus itself.
        """
        for checkpoint in (folder, folder / "model"):  # the latter: of a pre-training
            if (checkpoint / CONFIG).is_file():
                family = family_in(checkpoint)
                assert family.read_settings is not None
                sizes = family.read_settings(checkpoint / CONFIG)
                is_bert = family.name == "bert"  # of whose layers one is read
                layers = sizes["num_layers"] if is_bert else None
                return cls(checkpoint, family.name, layers, sizes["max_positions"])
        config = load_config(RunDirectory.trained(folder).config)
        theirs = config.data.path
        if theirs is not None and Path(theirs).resolve() == corpus.resolve():
            raise UserError(
                f"--start-from: {folder} was trained on {corpus} itself, which is private; start "
                "from a run on other people's utterances (docs/recipe.md)"
            )
        return cls(folder, config.model.family)


@dataclass(frozen=True)
class FirstConfig:
    """A configuration that is ready to train, and why it is as it is.

    Attributes:
        split: as YAML.
        unit: utterance or user.
        num_units: n, of utterances or of users in the training part.
        delta: None for 1/(2n).
        start: None for random weights.
        words: a public list; None where the words are those of `start`.
        labels: None for a task without labels.
        label_note: what the file says about them.
    """

    path: Path
    columns: ColumnsConfig
    task: Task
    corpus: Corpus
    split: str
    unit: str
    num_units: int
    epsilon: str
    delta: Optional[float]
    start: Optional[Start]
    words: Optional[Path]
    labels: Optional[Path] = None
    label_note: str = ""

    @property
    def family(self) -> str:
        return self.start.family if self.start else _FAMILY

    @property
    def recipe(self) -> Recipe:
        return RECIPES["encoder" if self.start and self.start.num_layers else self.family]

    @property
    def token_layer(self) -> Optional[int]:
        """The middle layer of a checkpoint."""
        layers = self.start.num_layers if self.start else None
        return layers and max(1, layers // 2)

    @property
    def max_pieces(self) -> Optional[int]:
        """The positions of a checkpoint, where the recipe would read more pieces."""
        most = self.start.max_positions if self.start else None
        settings, _ = read_layers([Path(file) for file in self.recipe.files])
        wanted = settings.get("data", {}).get("max_pieces", MAX_PIECES)
        return most if most and most < wanted else None

    @property
    def batch_size(self) -> int:
        """The share of the training part that the recipe takes, as far as it was measured."""
        wanted = min(self.recipe.largest_batch, int(self.recipe.share * self.num_units))
        return max(1, wanted // _WORKERS * _WORKERS or wanted)

    @property
    def share(self) -> int:
        """The batch as a percentage of the units."""
        return round(100 * self.batch_size / self.num_units)

    @property
    def epochs(self) -> int:
        return self.recipe.epochs[self.batch_size == self.recipe.largest_batch]

    @property
    def sizes(self) -> str:
        """How many utterances each part has."""
        train, validation, test = (len(getattr(self.corpus.split, part)) for part in PARTS)
        return f"{train:,} utterances train, {validation:,} validate and {test:,} test"

    @property
    def column_names(self) -> Dict[str, str]:
        default = asdict(ColumnsConfig())
        return {key: v for key, v in asdict(self.columns).items() if v != default[key]}

    def to_yaml(self, out: Path) -> str:
        """Return the file's text; its includes are relative to `out`."""
        environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
        environment.filters["quoted"] = lambda text: quoted(str(text))
        environment.filters["in_shell"] = lambda text: quote(str(text))
        relative = (os.path.relpath(file, out.parent) for file in self.recipe.files)
        includes = [each if _PLAIN.fullmatch(each) else quoted(each) for each in relative]
        template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
        return template.render(c=self, out=out, includes=includes)


def refuse_without_recipes() -> None:
    """Refuse a folder without the files that a configuration includes."""
    for file in (file for recipe in RECIPES.values() for file in recipe.files):
        if not Path(file).is_file():
            raise UserError(
                f"there is no {file} here: the recipes come with the repository, not with the "
                "installed package; call this in a clone"
            )


def first_config(
    path: Path,
    *,
    parts: Dict[str, int],
    columns: ColumnsConfig,
    task: Task,
    unit: str,
    epsilon: float,
    delta: Optional[float],
    progress: Progress = no_progress,
    **rest: Any,
) -> FirstConfig:
    """Propose a configuration for the corpus at a path.

    Args:
        parts: how many utterances the corpus has in each part of its own.
        epsilon: that is to hold, at `delta`; None for 1/(2n).
        progress: put around the utterances of a large corpus that is read for the first time.
        rest: the other attributes of `FirstConfig`.

    Raises:
        UserError: the corpus is too small for three parts, or names no users that could be the
            unit; or δ is not below 1/n.
    """
    has_own = has_own_split(parts)
    name = path.absolute().name.partition(".")[0]
    if name in (*PUBLIC_CORPORA, *STANDINS):
        name = f"my_{name}"
    split = "own" if has_own else SplitConfig(**_SHARES)
    data = DataConfig(corpus=name, path=str(path), split=split, columns=columns)
    corpus = load_corpus(data, progress=progress)
    n = len(corpus.split.train)
    if UNITS[unit].is_user:
        if not names_users(corpus.utterances):
            raise UserError(f"--user-key: {path} names no users; name them by {HOW_TO_NAME}")
        n = len(np.unique(users_of(corpus.train)))
    choose_delta(num_examples=n, delta=delta)  # refuses what training would refuse
    shares = ", ".join(f"{key}: {value}" for key, value in _SHARES.items())
    said = "own" if has_own else f"{{{shares}}}"
    return FirstConfig(path, columns, task, corpus, said, unit, n, f"{epsilon:g}", delta, **rest)
