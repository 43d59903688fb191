"""The learning rate over the steps of a run."""

from __future__ import annotations

from dataclasses import dataclass

from edp_mx.runtime.settings import Settings, setting


@dataclass(frozen=True)
class Schedule(Settings):
    """By what the learning rate is multiplied at each step: linear warm-up, then as `kind` says.

    Attributes:
        kind: constant (stays at 1) or linear (falls to 0 at the end).
        warmup_fraction: so much of all steps the factor rises from 0 to 1.

    Raises:
        UserError: a value is impossible.

    Source: Devlin et al. 2019, appendix A.2 (linear, 1 % warm-up) and A.3 (10 % in fine-tuning).

    Example:
        >>> [Schedule("linear", 0.5).factor(step, 4) for step in range(5)]
        [0.5, 1.0, 1.0, 0.5, 0.0]
    """

    kind: str = setting("constant", one_of=("constant", "linear"))
    warmup_fraction: float = setting(0.0, at_least=0, below=1)

    def factor(self, step: int, total_steps: int) -> float:
        """The factor in [0, 1] at a step.

        Args:
            step: from 0.
            total_steps: of the whole run.

        Edge cases: no step is without effect: the first has a factor above 0, and the last
            (`total_steps` − 1) too. A step beyond the end has the factor of the end.
        """
        warmup = int(round(self.warmup_fraction * total_steps))
        if step < warmup:
            return (step + 1) / warmup
        if self.kind == "constant":
            return 1.0
        return max(0.0, (total_steps - step) / max(1, total_steps - warmup))
