"""What no other place has caught ends with one sentence, and its cause decides which."""

import io
import sys

import pytest
from support.cli import from_a_shell

from edp_mx.cli import account, main


def ends_with(error, monkeypatch, capsys):
    """Exit code and standard error of a command that fails with this."""

    def fail(_):
        raise error

    monkeypatch.setattr(account, "run", fail)
    code = main(["account"])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    "error, code, said",
    [
        (MemoryError("Unable to allocate 9"), 2, "not enough memory (Unable to allocate 9)"),
        (RuntimeError("MXNetError: Failed to allocate CPU Memory"), 2, "lower training.batch_size"),
        (OSError(30, "Read-only file system", "runs/x"), 2,
         "edp-mx account: cannot use runs/x: Read-only file system\n"),
        (OSError("nothing more is known"), 2, "edp-mx account: nothing more is known\n"),
        (RecursionError("maximum recursion depth exceeded"), 2, "nested too deeply"),
        (RuntimeError("Horovod has been shut down"), 2, "another worker has ended"),
        (ZeroDivisionError("float division by zero"), 1,
         "a fault of the program (ZeroDivisionError: float division by zero); EDP_MX_DEBUG=1"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_whatever_is_raised_is_one_sentence(error, code, said, monkeypatch, capsys):
    found, err = ends_with(error, monkeypatch, capsys)
    assert found == code
    assert said in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_terminal_that_knows_few_letters_or_none_is_no_fault(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(account, "run", lambda _: print("Δ") or 0)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii", write_through=True))
    assert main(["account"]) == 0 and written.getvalue() == b"\\u0394\n"
    monkeypatch.setattr(sys, "stdout", None)  # closed
    assert main(["account"]) == 0


def test_a_traceback_is_shown_to_whoever_asks(monkeypatch, capsys):
    monkeypatch.setenv("EDP_MX_DEBUG", "1")
    _, err = ends_with(KeyError("x"), monkeypatch, capsys)
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("edp-mx account: a fault")


def test_a_model_that_no_memory_holds_names_the_settings_to_lower(tmp_path):
    config = tmp_path / "large.yaml"
    config.write_text(
        "data: {corpus: health, size: 100}\nprivacy: {mechanism: none}\n"
        "model: {family: clc, hidden_size: 65536}\n"
    )
    ended = from_a_shell("train", config, "--runs", tmp_path / "runs")
    assert ended.returncode == 2
    *_, last = ended.stderr.splitlines()
    assert "not enough memory" in last and "hidden_size" in last
    assert "Traceback" not in ended.stderr
    assert not list((tmp_path / "runs").iterdir())


PLAN = ["account", "--noise-multiplier", "1", "--epochs", "5"]
POISSON = ["--delta", "1e-5", "--sampler", "poisson"]


@pytest.mark.parametrize(
    "options, said",
    [
        (["--delta", "1e-320"], "privacy.delta must be at least"),
        (
            ["--delta", "1e-5", "--set", "privacy.decay={kind: linear, rate: 1e308}"],
            "privacy.decay.rate: 1e+308 is more than 1e+300",
        ),
        ([*POISSON, "--sample-rate", "1e-300"], "sample_rate is 1e-300"),
        ([*POISSON, "--sample-rate", "1e-6"], "5,000,000 Poisson"),
        (
            ["--delta", "1e-5", "--set", "privacy.max_grad_norm=1e308"],
            "max_grad_norm: 1e+308 is more",
        ),
    ],
)
def test_numbers_that_nothing_can_count_with_are_refused(options, said, capsys):
    assert main([*PLAN, *options]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


@pytest.mark.parametrize("option", ["--workers", "--num-examples"])
@pytest.mark.parametrize("digits", [12, 400, 5000])
def test_a_whole_number_has_a_limit(option, digits, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*PLAN, "--delta", "1e-5", option, "9" * digits])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
