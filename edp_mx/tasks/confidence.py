"""How sure a model must be of a label to answer with it."""

from __future__ import annotations

from dataclasses import dataclass

from edp_mx.runtime.settings import Settings, setting


@dataclass(frozen=True)
class Confidence(Settings):
    """How the scores of labels become an answer.

    Attributes:
        temperature: the scores are divided by it; above 1 it lowers confidences. It changes no
            order of labels, and nothing about slots.
        threshold: a label with less confidence is answered as out of scope.
        out_of_scope: the answer then; the corpus' own label for it, if it has one, such as oos.

    Source: Guo et al. 2017, section 4.2, for the temperature; Hendrycks and Gimpel 2017 for the
        threshold on the largest probability.
    """

    temperature: float = setting(1.0, above=0, at_most=100)
    threshold: float = setting(0.0, at_least=0, at_most=1)
    out_of_scope: str = "out of scope"

    def answer(self, label: str, confidence: float) -> str:
        """Return the label, or that it is none of them."""
        return label if confidence >= self.threshold else self.out_of_scope
