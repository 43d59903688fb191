"""A subcommand of `edp-mx`: in this process, or from a shell."""

import json
import subprocess
import sys

from edp_mx import cli

WITHOUT_MXNET = """
import json, sys
from edp_mx.cli import main
for command in json.loads(sys.argv[1]):
    assert main(command) == 0 and "mxnet" not in sys.modules, command
"""


def parse(command, *options):
    """The arguments of a subcommand; `arguments.run(arguments)` runs it."""
    return cli.parse([command, *map(str, options)])


def run(command, *options):
    """The exit code of a subcommand."""
    arguments = parse(command, *options)
    return arguments.run(arguments)


def printed(capsys, command, *options):
    """What a subcommand prints when all goes well."""
    assert run(command, *options) == 0
    return capsys.readouterr().out


def strictly(text):
    """JSON without NaN or Infinity."""

    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def from_a_shell(*options, program=("-m", "edp_mx")):
    """The ended process of a command."""
    command = [sys.executable, *program, *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def without_mxnet(*commands):
    """Runs commands, each a list of words, that must not load MXNet, in one process."""
    result = from_a_shell(json.dumps(commands), program=("-c", WITHOUT_MXNET))
    assert result.returncode == 0, result.stderr
