"""Makes docs/settings.md from the dataclasses that hold the settings.

Run: .venv/bin/python docs/make_settings.py
"""

import dataclasses
import re
import textwrap
from pathlib import Path
from typing import Any, Dict, Iterator, Sequence, Tuple, Union, get_args, get_origin, get_type_hints

from edp_mx.config import ExperimentConfig
from edp_mx.models.registry import FAMILIES

PAGE = Path(__file__).with_name("settings.md")
HEAD = """\
# Settings

Every key of a configuration, made from the code by `.venv/bin/python docs/make_settings.py`. A
configuration sets only what differs from the defaults:

```yaml
training:
  epochs: 20
  learning_rates: {heads: 4.0e-3}
```

Here, and in `--set training.epochs=20`, the keys are joined by dots. A default of `null` means "not
set". Paths are relative to the working directory. A share or a fraction is a number from 0 to 1,
not a percentage. [Your own corpus](own-corpus.md) says how configurations are laid over each other.
"""
TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text"}
PLURALS = {bool: "truths", int: "whole numbers", float: "numbers", str: "texts"}


def make_page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *_sections(ExperimentConfig, "", "##")])


def meanings(cls: type) -> Dict[str, str]:
    """Return what the docstrings of a dataclass and of its bases say about each field."""
    found: Dict[str, str] = {}
    for each in reversed(cls.__mro__[:-1]):
        head, _, body = (each.__doc__ or "").partition("\n")
        text = f"{head}\n{textwrap.dedent(body)}\n"
        for section in re.findall(r"^(?:Args|Attributes):\n((?:    .*\n|\n)+)", text, re.M):
            for entry in re.split(r"^    (?=\S)", section, flags=re.M)[1:]:
                names, _, meaning = entry.partition(":")
                for name in names.split(","):
                    found[name.strip()] = " ".join(meaning.split())
    return found


def _sections(cls: type, prefix: str, heading: str) -> Iterator[str]:
    """Yield a table for a dataclass and for each below it; of a model, for each family."""
    yield from _table(cls, prefix, f"{heading} {f'`{prefix[:-1]}`' if prefix else 'Top level'}")
    for field in dataclasses.fields(cls):
        kind = get_type_hints(cls)[field.name]
        if field.name == "model" and prefix == "":
            for name, family in FAMILIES.items():
                yield from _table(family.config, "model.", f"{heading} `model` of family {name}")
            continue
        for each in (kind, *get_args(kind)):  # a setting may be a text or a mapping
            if dataclasses.is_dataclass(each):
                yield from _sections(each, f"{prefix}{field.name}.", heading)


def _table(cls: type, prefix: str, title: str) -> Iterator[str]:
    hints, told = get_type_hints(cls), meanings(cls)
    rows = []
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint):
            continue
        if field.name not in told:
            raise KeyError(f"the docstring of {cls.__name__} does not say what {field.name} is")
        is_path = field.metadata.get("is_path", False)
        cells = [f"`{prefix}{field.name}`", _type(hint, is_path=is_path), _default(field.default)]
        cells += [_bounds(*field.metadata.get("bounds", ((), ()))), told[field.name]]
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    if rows:
        head = ["| key | type | default | must be | meaning |", "| --- | --- | --- | --- | --- |"]
        yield "\n".join([title, "", *head, *rows, ""])


def _bounds(bounds: Sequence[Tuple[str, float]], choices: Sequence[str]) -> str:
    """Say the bounds of a field in words, if it has any."""
    if choices:
        return f"{'one of ' * (len(choices) > 1)}{', '.join(choices)}"
    return " and ".join(f"{name} {bound}" for name, bound in bounds)


def _type(hint: Any, *, is_path: bool) -> str:
    """Name a type in words."""
    options = [each for each in get_args(hint) if each is not type(None)]
    if get_origin(hint) is tuple:
        return f"list of {'paths' if is_path else PLURALS[options[0]]}"
    if get_origin(hint) is Union:
        return " or ".join(_type(each, is_path=is_path) for each in options)
    if dataclasses.is_dataclass(hint):
        return "mapping"
    return "path" if is_path and hint is str else TYPES[hint]


def _default(value: Any) -> str:
    """Write a default as YAML would."""
    if value is None or isinstance(value, bool):
        return f"`{str(value).lower().replace('none', 'null')}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
