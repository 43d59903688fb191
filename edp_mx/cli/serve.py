"""Answer over HTTP with a model: POST /predict, GET /health, /metrics and a page.

It has neither passwords nor encryption: beyond this machine, put a proxy with both before it.
"""

from __future__ import annotations

import argparse
import ipaddress
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Sequence

from edp_mx.cli.console import add_overrides, whole
from edp_mx.errors import UserError
from edp_mx.runtime.processes import interrupt

if TYPE_CHECKING:
    from edp_mx.reports.headlines import Headline

EXAMPLES = """\
examples:
  edp-mx serve runs/mine --port 8080
  curl -H 'Content-Type: application/json' -d '{"text": "call my parents"}' \\
    http://127.0.0.1:8080/predict
  edp-mx serve exported/mine --set threshold=0.5    # by ONNX Runtime, without MXNet
  what a language model writes, as it is written, in JSON lines: {"text": "…", "stream": true}
  two texts, of a model that reads two together: {"text": "…", "second": "…"}
  several at once: {"utterances": [{"text": "call mum"}, {"tokens": ["play", "jazz"]}]}
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_directory", type=Path, metavar="RUN",
        help="a run directory, or the folder of an export to ONNX")  # fmt: skip
    add("--host", default="127.0.0.1", help="where to listen (127.0.0.1: this machine alone)")
    add("--port", type=whole, default=8080, help="0 for any free one (8080)")
    add("--timeout", type=float, default=10.0, metavar="SECONDS",
        help="how long a prediction, or a part of a stream, may take (10)")  # fmt: skip
    add("--allow-host", dest="hosts", nargs="+", action="extend", default=[], metavar="NAME",
        help="other names by which requests may ask for this server, as a proxy hands them on "
        "(localhost, 127.0.0.1, [::1] and --host are known)")  # fmt: skip
    add("--full-confidences", action="store_true",
        help="answer all digits of confidences, not two: membership attacks read them")  # fmt: skip
    add_overrides(parser, "threshold=0.5, or of a language model beams=4")


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM; then answer the waiting requests and close the rest."""
    if not 0 <= arguments.port < 1 << 16:
        raise UserError(f"--port is {arguments.port}; it must be 0 to 65535")
    if not 0 < arguments.timeout <= 3600:
        raise UserError(f"--timeout is {arguments.timeout:g}; it must be above 0, at most 3600")
    try:
        from edp_mx.serving.server import build_server, predict_of, reader_of
    except ModuleNotFoundError as error:
        raise UserError(
            f"edp-mx serve needs {error.name}: pip install 'edp_mx[serve]', or launch/setup.sh"
        ) from error
    path = arguments.run_directory
    cut, reads_second = reader_of(path)
    server = build_server(
        path.resolve().name,
        partial(predict_of, path, arguments.overrides),
        host=arguments.host,
        port=arguments.port,
        seconds=arguments.timeout,
        hosts=arguments.hosts,
        digits=None if arguments.full_confidences else 2,
        cut=cut,
        reads_second=reads_second,
        head=_head_of(path) if _is_loopback(arguments.host) and not arguments.hosts else (),
    )
    signal.signal(signal.SIGTERM, interrupt)
    if not _is_loopback(arguments.host):
        print("edp-mx serve: anybody who reaches this machine can ask the model", file=sys.stderr)
    print(f"http://{arguments.host}:{server.port}/ (Ctrl-C ends it)", flush=True)
    server.run()
    return 0


def _head_of(path: Path) -> Sequence[Headline]:
    """The three numbers of the run, for people at this machine: no ε covers its scores.

    Who comes through a proxy is not at this machine, though the proxy is.
    """
    from edp_mx.runs.exported.exported_model import is_exported

    if is_exported(path):
        return ()
    from edp_mx.reports.run_head import head_of
    from edp_mx.runs.run_directory import RunDirectory

    return head_of(RunDirectory.trained(path))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
