"""A subcommand of `edp-mx` in this process."""

import argparse
from importlib import import_module


def parse(command, *options):
    """The arguments of a subcommand; `arguments.run(arguments)` runs it."""
    top = argparse.ArgumentParser()
    import_module(f"edp_mx.cli.{command}").add_parser(top.add_subparsers())
    return top.parse_args([command, *map(str, options)])


def printed(capsys, command, *options):
    """What a subcommand prints when all goes well."""
    arguments = parse(command, *options)
    assert arguments.run(arguments) == 0
    return capsys.readouterr().out
