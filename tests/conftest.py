"""Seeds, and the real corpora where they are at hand."""

import os
import sys
import zlib
from pathlib import Path

import edp_mx  # noqa: F401 (before NumPy, whose kernels it names)

# isort: split
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# What the tests' many processes import is compiled once, not by each of them anew, also where the
# machine's settings forbid to keep it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The real corpora may lie beside the checkout.
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
if DATA.is_dir():
    os.environ.setdefault("EDP_MX_DATA", str(DATA))

# A test draws the same numbers each time, unless EDP_MX_TEST_SEED says which ("new": others each
# run). Keys of noise are the operating system's, always: what they decide has a margin.
SEED = os.environ.get("EDP_MX_TEST_SEED")

# A busy machine is no failure: how long an example takes says nothing about what it shows.
settings.register_profile(
    "edp_mx", deadline=None, derandomize=SEED is None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("edp_mx")


@pytest.fixture(scope="session", autouse=True)
def cache_of_corpora(tmp_path_factory):
    """Nothing is kept in, or taken from, the cache and the key of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDP_MX_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("EDP_MX_KEY", str(tmp_path_factory.mktemp("key") / "fingerprint.key"))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_sample():
    """The public sample of a stand-in is drawn and numbered once, not by each training here."""
    if "edp_mx.runs.build" not in sys.modules:  # nothing trains, and MXNet would take its time
        yield
        return
    from edp_mx.data.columnar_corpus import StoredUtterances, numbered
    from edp_mx.runs import build

    drawn, draw = {}, build.public_sample

    def sample(config, path):
        key = config.corpus, config.split_seed
        if path is not None:
            return draw(config, path)
        if key not in drawn:
            drawn[key] = StoredUtterances(*numbered(draw(config, path)), is_whole=True)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "public_sample", sample)
        yield


@pytest.fixture(scope="session")
def blocks_of_stand_ins():
    """What was drawn of the stand-ins, by the grammar, and where its generator stood."""
    return {}


@pytest.fixture(scope="module", autouse=True)
def blocks_drawn_once(request, blocks_of_stand_ins):
    """But where it is tested or its memory measured, a block of 10,000 of a stand-in is kept."""
    module, kept = sys.modules.get("edp_mx.data.synthetic.generator"), blocks_of_stand_ins
    with pytest.MonkeyPatch.context() as patch:
        if module and request.path.stem not in ("test_synthetic", "test_large_corpora"):
            real = module.Generator

            class Keeping:
                def __init__(self, grammar):
                    self._grammar = grammar

                def block(self, rng):
                    key = id(self._grammar), str(rng.bit_generator.state)
                    if key not in kept:
                        if len(kept) == 12:  # a few megabytes each
                            kept.pop(next(iter(kept)))
                        kept[key] = real(self._grammar).block(rng)
                    return kept[key]

            patch.setattr(module, "Generator", Keeping)
        yield


@pytest.fixture(scope="module", autouse=True)
def quick_pictures(request):
    """But for the tests of reports, trainings here draw their loss alone, and coarsely."""
    curves = sys.modules.get("edp_mx.reports.curves")
    with pytest.MonkeyPatch.context() as patch:
        if curves and request.path.parent.name != "reports":
            from edp_mx.reports import figures

            of_all, build = curves._panels_with, figures.Figure
            patch.setattr(curves, "_panels_with", lambda *given: of_all(*given)[:1])
            patch.setattr(figures, "Figure", lambda **how: build(**{**how, "layout": "none"}))
            patch.setattr(figures, "DOTS", 40)
        yield


@pytest.fixture
def seed(request):
    """The test's own seed, or what EDP_MX_TEST_SEED says; printed when the test fails."""
    if SEED is None:
        value = zlib.crc32(request.node.nodeid.encode())
    elif SEED == "new":
        value = int.from_bytes(os.urandom(4), "little")
    else:
        value = int(SEED)
    print(f"seed: EDP_MX_TEST_SEED={value} repeats {request.node.name}")
    return value


@pytest.fixture
def generator(seed):
    """A NumPy generator from `seed`."""
    return np.random.default_rng(seed)


@pytest.fixture(scope="session")
def corpora():
    """The folder with the real corpora; the test is skipped where there is none."""
    folder = Path(os.environ.get("EDP_MX_DATA") or "data")
    if not folder.is_dir():
        pytest.skip(
            "the real corpora are absent: set EDP_MX_DATA to a folder with atis/, snips/, "
            "nlu_eval/ and dstc8/ (edp-mx data fetch)"
        )
    return folder
