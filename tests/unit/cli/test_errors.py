"""Who says an error, and how."""

from __future__ import annotations

import argparse

import pytest

from edp_mx import cli
from edp_mx.errors import UserError


@pytest.mark.parametrize(
    ("rank", "is_shared", "is_said"),
    [("0", True, True), ("0", False, True), ("1", True, False), ("1", False, True)],
)
def test_a_shared_error_is_said_by_the_first_worker_alone(
    rank, is_shared, is_said, monkeypatch, capsys
):
    def run(_):
        raise UserError("a file is torn", is_shared=is_shared)

    class Parser:
        def parse_args(self, _):
            return argparse.Namespace(run=run, command="train")

    monkeypatch.setattr(cli, "parser", Parser)
    monkeypatch.setattr(cli, "OTHERS_WAIT", 0.0)
    monkeypatch.setenv("HOROVOD_RANK", rank)
    assert cli.main([]) == 2
    assert ("edp-mx train: a file is torn" in capsys.readouterr().err) == is_said
