"""A server for one trained model, on waitress."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import waitress

from edp_mx.config import load_config
from edp_mx.data.tokenization import Cut
from edp_mx.reports.pages import render_page
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.trained import load_run
from edp_mx.serving.app import App
from edp_mx.serving.batcher import Batcher, Predict

MOST_BYTES = 1 << 20  # of a request's body
MOST_HEADER_BYTES = 1 << 14
THREADS = 64  # each waits for the model: so many questions make up a batch
MOST_CONNECTIONS = 1000
IDLE_SECONDS = 20  # after which a client that sends nothing is cut off


def load_model(run: Path) -> Predict:
    """Return the function that predicts with a run's model; its first call has been made."""
    predict = load_run(run).predict
    predict([["ready"]])  # the first prediction is slow
    return predict


def cut_of(run: Path) -> Cut:
    """Return the function that makes tokens of a text as a run's corpus was cut."""
    return load_config(RunDirectory.trained(run).config).data.tokens_of


def build_server(
    name: str,
    load: Callable[[], Predict],
    *,
    host: str,
    port: int,
    seconds: float,
    cut: Cut = str.split,
) -> Any:
    """Load a model and return a server that listens; its `run()` answers until interrupted.

    Args:
        name: of the run.
        load: as for `Batcher`.
        port: 0 for any free one; see `port_of`.
        seconds: after which a prediction is given up.
        cut: makes tokens of a text.

    Raises:
        UserError: the run has no model.
        OSError: the port is taken.
    """
    batcher = Batcher(load)
    batcher.wait_until_loaded()
    page = render_page("serve.html", title=name)
    return waitress.create_server(
        App(batcher, name=name, page=page, seconds=seconds, cut=cut),
        host=host,
        port=port,
        threads=THREADS,
        connection_limit=MOST_CONNECTIONS,
        max_request_body_size=MOST_BYTES,
        max_request_header_size=MOST_HEADER_BYTES,
        channel_timeout=IDLE_SECONDS,
        cleanup_interval=max(1, IDLE_SECONDS // 4),
        ident=None,
        clear_untrusted_proxy_headers=True,
    )


def port_of(server: Any) -> int:
    """Return the port that a server listens at."""
    if hasattr(server, "effective_listen"):  # a name with several addresses
        return server.effective_listen[0][1]
    return server.effective_port
