"""Damaged files: no traceback, no hang, no memory filled, and no smaller ε without a word.

Each subject takes the case of a number, so that a failure is repeated by its number:
`PYTHONPATH=.:tests:benchmarks python -m fuzz.child /tmp/fuzz NUMBER 1 SUBJECT`.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fuzz.cases import SUBJECTS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edp_mx.data.readers import FORMATS

ROOT = Path(__file__).resolve().parents[2]
CASES, BATCH = int(os.environ.get("EDP_MX_FUZZ_CASES", 100_000)), 2_500
CHEAP = dict.fromkeys(SUBJECTS, 40)
CHEAP["Runs"] = 8


@pytest.fixture(scope="module", params=sorted(SUBJECTS))
def subject(request, tmp_path_factory):
    """Each subject, with its files made."""
    return SUBJECTS[request.param](tmp_path_factory.mktemp(request.param))


def test_each_layout_has_a_subject():
    assert {getattr(kind, "layout", "") for kind in SUBJECTS.values()} - {""} == {*FORMATS}


def test_damaged_files_are_refused_in_a_sentence_or_read(subject):
    """`case` raises whatever is not a refusal in one sentence, or a broken promise."""

    @settings(max_examples=CHEAP[type(subject).__name__], suppress_health_check=[*HealthCheck])
    @given(st.integers(0, 2**32))
    def take(seed):
        subject.case(seed)

    take()


def batch(folder, first):
    """What went wrong in a batch of cases: in a process that has limits, and may be ended."""
    found, end = [], first + BATCH
    while first < end:
        command = [sys.executable, "-m", "fuzz.child", str(folder), str(first), str(end - first)]
        paths = os.pathsep.join(str(ROOT / name) for name in (".", "tests", "benchmarks"))
        child = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
        )
        said = [json.loads(line) for line in child.stdout.splitlines()]
        found += [line for line in said if "failed" in line]
        if said and "ended" in said[-1]:
            return found
        assert said, child.stderr[-2000:]
        last = max(line.get("begun", -1) for line in said)
        found.append({"ended by": child.returncode, **said[-1]})
        first = last + 1
    return found


@pytest.mark.slow
@pytest.mark.timeout(8 * 3600)
def test_a_hundred_thousand_damaged_files(tmp_path):
    """In processes that end after 5 s of processor time in a case, or beyond 1 GB."""
    starts = range(0, CASES, BATCH)
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        found = list(pool.map(lambda first: batch(tmp_path / str(first), first), starts))
    wrong = [each for some in found for each in some]
    assert not wrong, json.dumps(wrong[:20], indent=1)
