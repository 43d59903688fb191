"""Ghost clipping whose sum autograd makes in a second backward pass: an oracle for one pass."""

from dataclasses import replace

import mxnet as mx
from mxnet import autograd

from edp_mx.privacy.factors import SMALLEST_FACTOR
from edp_mx.privacy.ghost.clipping import GhostClipping


class TwoPasses(GhostClipping):
    """The clipped sum is the gradient of Σ_j c_j L_j; the norms are ghost clipping's."""

    def _add(self, losses):
        rules, made = self._rules_of(losses)
        before = replace(self.statistics)
        factors = self._factors(self._squares(rules, len(made)))
        if (factors < SMALLEST_FACTOR).any():  # 0 · ∞ would be in the second pass
            self.statistics = before
            return super()._add(losses)
        self.flat.mark(is_fresh=False)
        with autograd.record():
            made = losses()
        made.backward(mx.nd.array(factors, ctx=made.context, dtype="float32"))
        self.flat.refuse_stale()
        return self.flat.gradients(), 1.0, made
