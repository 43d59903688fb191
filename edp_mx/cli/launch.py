"""Start the workers of `launch/*.sh`, and again after a fault that a restart can mend."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from typing import Any, List

from edp_mx.cli import parse
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.processes import (
    EXIT_ASKED,
    EXIT_HUNG_UP,
    EXIT_NO_SSH,
    asked_to_end,
    end_with_parent,
    launcher,
    on_ending,
)
from edp_mx.runtime.watchdog import EXIT_HANGS, EXIT_PEER_DIED

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0  # seconds before a restart; each is twice the last


def is_mendable(code: int) -> bool:
    """Return whether a job with this exit code may end well if it is started again.

    It may if a worker was killed, a host was lost or nothing moved; an error of the user or of the
    program comes back, and each restart may spend more ε.
    """
    was_asked = code in (EXIT_ASKED, EXIT_HUNG_UP)
    was_killed = code < 0 or (code > 128 and not was_asked)  # the launcher itself, or a worker
    return was_killed or code in (EXIT_HANGS, EXIT_PEER_DIED, EXIT_NO_SSH)


class Restarts:
    """A job that is started again, up to `most` times, from where its run has come to."""

    def __init__(self, starter: List[str], command: List[str], arguments: Any) -> None:
        """Take the command of `edp-mx`, and the arguments that its parser has read."""
        self._starter, self._command, self._most = starter, command, arguments.max_restarts
        if arguments.resume is None and arguments.run_directory is None:
            from edp_mx.config import load_config

            name = load_config(arguments.configs, arguments.overrides).name
            path = RunDirectory.choose(name, arguments.runs).path
            self._command = [*command, "--run", str(path)]
        else:
            path = arguments.resume or arguments.run_directory
        self._run = RunDirectory(path)
        self._is_asked = threading.Event()  # by a signal, to end

    def run(self) -> int:
        """Return the exit code of the last start."""
        code, number, pause = self._start(), 0, FIRST_PAUSE
        while is_mendable(code) and not self._is_asked.is_set() and not self._run.has("results"):
            if number == self._most:
                self._say(f"no restart is left (--max-restarts {self._most})")
                break
            number += 1
            said = self._go_on()
            self._say(f"restart {number} of {self._most} in {pause:.0f} s: {said}")
            if self._is_asked.wait(pause):
                return asked_to_end()
            pause = min(2 * pause, LONGEST_PAUSE)
            code = self._start()
        return code

    def _start(self) -> int:
        words = [*self._starter, sys.executable, "-m", "edp_mx", *self._command]
        process = subprocess.Popen(words, preexec_fn=end_with_parent)

        def end(*_: object) -> None:
            self._is_asked.set()
            process.terminate()

        signal.signal(signal.SIGINT, end)
        on_ending(end)
        return process.wait()

    def _go_on(self) -> str:
        """Return where the run goes on, which steps it repeats and their effect on ε."""
        from edp_mx.runs.interrupted import has_begun, resumes_with

        if not has_begun(self._run):
            return "it begins anew"
        name, most = self._command[0], str(self._most)
        self._command = [name, "--resume", str(self._run.path), "--max-restarts", most]
        return resumes_with(self._run)

    @staticmethod
    def _say(sentence: str) -> None:
        print(f"edp-mx: {sentence}", file=sys.stderr, flush=True)


def main() -> int:
    """Run `python -m edp_mx.cli.launch --workers N train …`; return the exit code of the job."""
    own = argparse.ArgumentParser(prog="launch", description=__doc__)
    own.add_argument("--workers", required=True)
    own.add_argument("--hosts", help="host1:slots,host2:slots")
    own.add_argument("--nic", help="network interface between the hosts")
    own.add_argument("command", nargs=argparse.REMAINDER)
    given = vars(own.parse_args())
    command = given.pop("command")
    starter = launcher(**given)
    arguments = parse(command)
    if getattr(arguments, "max_restarts", 0) == 0:
        os.execv(sys.executable, [*starter, sys.executable, "-m", "edp_mx", *command])
    return Restarts(starter, command, arguments).run()


if __name__ == "__main__":
    sys.exit(main())
