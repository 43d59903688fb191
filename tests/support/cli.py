"""A subcommand of `edp-mx`: in this process, or from a shell."""

import argparse
import json
import subprocess
import sys
from importlib import import_module

WITHOUT_MXNET = (
    "import sys; from edp_mx.cli import main; code = main(sys.argv[1:]);"
    "assert 'mxnet' not in sys.modules, 'mxnet was loaded'; sys.exit(code)"
)


def parse(command, *options):
    """The arguments of a subcommand; `arguments.run(arguments)` runs it."""
    top = argparse.ArgumentParser()
    import_module(f"edp_mx.cli.{command}").add_parser(top.add_subparsers())
    return top.parse_args([command, *map(str, options)])


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


def without_mxnet(*options):
    """What a command prints that must not load MXNet."""
    result = from_a_shell(*options, program=("-c", WITHOUT_MXNET))
    assert result.returncode == 0, result.stderr
    return result.stdout
