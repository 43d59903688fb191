"""How many modules one has to read to follow the noise, ε and a gradient."""

import sys
from pathlib import Path

import mxnet as mx
import pytest
from mxnet import gluon

import edp_mx
from edp_mx.dp.privacy.clipping import Clipping

PACKAGE = Path(edp_mx.__file__).parent
Z, N, B = 1.2345678, 64, 16


class Walk:
    """The modules of the package whose functions are called, or hold one of some numbers."""

    def __init__(self, *numbers):
        self.numbers, self.seen = numbers, set()

    def __enter__(self):
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _look(self, frame, event, value):
        path = Path(frame.f_code.co_filename)
        if event not in ("call", "return") or PACKAGE not in path.parents:
            return
        held = [*frame.f_locals.values(), value if event == "return" else None]
        if not self.numbers or any(self._is_one(each) for each in held):
            self.seen.add(str(path.relative_to(PACKAGE)))

    def _is_one(self, value):
        return isinstance(value, float) and any(abs(value / x - 1) < 1e-12 for x in self.numbers)


@pytest.fixture
def dataset():
    return gluon.data.ArrayDataset(mx.nd.ones((N, 3)), mx.nd.ones((N, 1)))


def begun(unit):
    plan = edp_mx.make_plan(num_examples=N, epochs=1, batch_size=B, noise_multiplier=Z, unit=unit,
                            sampler="shuffle", clipping="loop", delta=1e-3)  # fmt: skip
    net = gluon.nn.Dense(1, in_units=3)
    net.initialize()
    return edp_mx.PrivateTraining(net, gluon.loss.L2Loss(), plan=plan, optimizer="sgd")


@pytest.mark.parametrize("unit", ["example", "micro_batch"])
def test_from_the_noise_multiplier_to_the_noise_and_to_epsilon(unit, dataset):
    with Walk(Z, Z / B) as walk:
        private = begun(unit)
        private.step(next(iter(private.batches(dataset))))
        assert private.epsilon > 0
    assert "dp/privacy/mechanism.py" in walk.seen and len(walk.seen) <= 16, sorted(walk.seen)


def test_from_a_gradient_to_the_weights(dataset, monkeypatch):
    """Twelve modules, and those of the runtime that reach the compiled loops."""
    private = begun("micro_batch")
    batches = iter(private.batches(dataset))
    private.step(next(batches))
    second, walk, backward = next(batches), Walk(), Clipping._backward

    def then(self, losses):
        made = backward(self, losses)
        walk.__enter__()
        return made

    monkeypatch.setattr(Clipping, "_backward", then)
    private.step(second)
    walk.__exit__()
    found = {module for module in walk.seen if not module.startswith("runtime/")}
    assert "dp/privacy/trainer.py" in found and len(found) <= 12, sorted(walk.seen)
    assert len(walk.seen) <= 15, sorted(walk.seen)
