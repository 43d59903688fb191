"""A process with limits that reads damaged files: `python -m fuzz.child FOLDER FIRST COUNT`.

The cases are numbered; the subjects take turns. Each is named before it is begun, so that whoever
started the process knows what ended it: SIGPROF, which nothing handles, does after 5 s of processor
time in one case.
"""

import json
import resource
import signal
import sys
import traceback
from pathlib import Path

SECONDS, BYTES = 5.0, 1 << 30  # of processor time, and of memory beyond what it has at the start


def limit_memory():
    """No more memory than there is now and `BYTES`."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))


def main(folder, first, count, names):
    """Read so many cases, and print what happened as lines of JSON."""
    from fuzz.cases import SUBJECTS, environment_of

    environment_of(folder)
    names = names or sorted(SUBJECTS)
    subjects = [SUBJECTS[name](folder / name) for name in names]
    taken = dict.fromkeys(names, 0)
    limit_memory()
    for seed in range(first, first + count):
        name = names[seed % len(names)]
        print(json.dumps({"begun": seed, "subject": name}), flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            taken[name] += subjects[seed % len(names)].case(seed)
        except BaseException as error:
            where = traceback.format_exception(type(error), error, error.__traceback__)[-4:]
            told = {"failed": seed, "subject": name, "error": repr(error)[:300], "where": where}
            print(json.dumps(told), flush=True)
        signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps({"ended": first + count, "taken": taken}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
