"""A server for one trained model."""

from __future__ import annotations

import ipaddress
import re
from functools import partial
from pathlib import Path
from typing import Callable, Iterable, Optional, Sequence, Tuple

from edp_mx.data.tokenization import Cut
from edp_mx.reports.headlines import Headline
from edp_mx.reports.pages import render_page
from edp_mx.runs.exported.exported_model import about_of, is_exported, load_model
from edp_mx.serving.app import App
from edp_mx.serving.batcher import Batcher, Predict
from edp_mx.serving.connections import Server

MOST_AT_ONCE = 32  # utterances that the model reads together: MXNet keeps the memory that it took


def predict_of(path: Path, overrides: Sequence[str] = ()) -> Predict:
    """Return the function that predicts with a model; its first call has been made.

    Args:
        path: a run, or a folder that was exported for ONNX Runtime.
        overrides: how it answers, such as `threshold=0.5`.
    """
    model = load_model(path)
    if overrides:
        model.set_answering(overrides)
    predict = partial(model.predict, most_at_once=MOST_AT_ONCE)
    predict([["ready"]])  # the first prediction is slow
    return predict


def reader_of(path: Path) -> Tuple[Cut, Optional[bool]]:
    """Return what cuts a text into tokens as a model's corpus was cut, and whether it reads two.

    The latter is None where the folder of an export does not say it.
    """
    if is_exported(path):
        about = about_of(path)
        return re.compile(about["token_pattern"]).findall, about.get("reads_second")
    from edp_mx.config import load_config  # it has MXNet
    from edp_mx.runs.run_directory import RunDirectory

    data = load_config(RunDirectory.trained(path).config).data
    return data.tokens_of, data.reads_second


def build_server(
    name: str,
    load: Callable[[], Predict],
    *,
    host: str,
    port: int,
    seconds: float,
    hosts: Iterable[str] = (),
    digits: Optional[int] = 2,
    cut: Cut = str.split,
    reads_second: Optional[bool] = None,
    head: Sequence[Headline] = (),
) -> Server:
    """Load a model and return a server that listens.

    Args:
        name: of the run.
        load: as for `Batcher`.
        host: where to listen; a request may ask for it by this name.
        port: 0 for any free one.
        seconds: as for `App`, and so are `hosts`, `digits`, `cut` and `reads_second`.
        head: the numbers above the page; no ε covers scores, so that only trusted people see them.

    Raises:
        UserError: the run has no model, the port is taken, or there is no such host.
    """
    batcher = Batcher(load)
    batcher.wait_until_loaded()
    app = App(
        batcher,
        name=name,
        page=render_page("serve.html", title=name, head=head),
        seconds=seconds,
        hosts=[host, *hosts],
        is_everywhere=_is_any(host),
        digits=digits,
        cut=cut,
        reads_second=reads_second,
    )
    return Server(app.answer, host=host, port=port, at_end=batcher.close)


def _is_any(host: str) -> bool:
    """Whether this means all addresses of this machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
