"""HTML pages of all reports: self-contained, light or dark, for any width."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from edp_mx.reports.footnotes import split_footnote, split_mark


def render_page(template: str, **content: Any) -> str:
    """Return the page that a template of `reports/templates` makes of its content."""
    return _environment().get_template(template).render(**content)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).with_name("templates"))
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.globals.update(split_mark=split_mark, split_footnote=split_footnote)
    return environment
