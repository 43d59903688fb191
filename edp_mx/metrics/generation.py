"""All scores of generated text at once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Mapping, Sequence

from edp_mx.metrics.quoted_values import missing_values, quoted_values
from edp_mx.metrics.spans import check_pairs
from edp_mx.metrics.text_overlap import bleu, distinct, nist, rouge_l, word_f1


@dataclass(frozen=True)
class GenerationScores:
    """Scores of the texts that were generated for the prompts of a corpus.

    All but the NIST score and the counts are ratios, not percentages. METEOR is left out: it needs
    WordNet, which must be downloaded.

    Attributes:
        word_f1: ConvAI2's F1 of the words of a reply, the mean over the prompts.
        slot_error_rate: `missing_values` ÷ `values`; 0 where the prompts have no values. Departs:
            that of Wen et al. 2015 also counts values that the table does not have, which can be
            recognised only where all values of a slot are known.
        values: the values in quotation marks in the prompts; see `quoted_values`.
        prompts: number of distinct prompts; a text is generated for each.
        references: number of texts that they are compared with.
    """

    bleu: float
    rouge_l: float
    nist: float
    word_f1: float
    distinct_1: float
    distinct_2: float
    slot_error_rate: float
    values: int
    missing_values: int
    prompts: int
    references: int

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)

    def describe(self) -> str:
        """Return lines for the console, shares in per cent."""
        slots = (
            f"{100 * self.slot_error_rate:>7.2f}%  {self.missing_values} of {self.values} values "
            "missing"
            if self.values
            else f"{'-':>8}  (the prompts have no values in quotation marks)"
        )
        return "\n".join(
            (
                f"prompts          {self.prompts:>8}  {self.references} references",
                f"BLEU             {100 * self.bleu:>7.2f}%",
                f"ROUGE-L          {100 * self.rouge_l:>7.2f}%",
                f"NIST             {self.nist:>8.3f}",
                f"F1 of words      {100 * self.word_f1:>7.2f}%",
                f"distinct words   {100 * self.distinct_1:>7.2f}%  pairs of words "
                f"{100 * self.distinct_2:.2f}%",
                f"slot errors      {slots}",
            )
        )


def group_references(prompts: Sequence[str], replies: Sequence[str]) -> Dict[str, List[str]]:
    """Return the replies to each distinct prompt, in the order of first appearance.

    Example:
        >>> group_references(["a", "b", "a"], ["1", "2", "3"])
        {'a': ['1', '3'], 'b': ['2']}
    """
    check_pairs(prompts, replies)
    grouped: Dict[str, List[str]] = {}
    for prompt, reply in zip(prompts, replies):
        grouped.setdefault(prompt, []).append(reply)
    return grouped


def score_generated(
    references: Mapping[str, Sequence[str]], hypotheses: Sequence[str]
) -> GenerationScores:
    """Compare generated texts with the references of their prompts.

    Args:
        references: prompt → the texts that would be right, as `group_references` returns them.
        hypotheses: a text for each prompt, in the same order.

    Raises:
        UserError: there are not as many texts as prompts, there are none, or a library is missing.
    """
    prompts, wanted = list(references), list(references.values())
    check_pairs(wanted, hypotheses)
    values = sum(len(quoted_values(prompt)) for prompt in prompts)
    missing = sum(len(missing_values(*pair)) for pair in zip(prompts, hypotheses))
    return GenerationScores(
        bleu=bleu(wanted, hypotheses),
        rouge_l=rouge_l(wanted, hypotheses),
        nist=nist(wanted, hypotheses),
        word_f1=sum(map(word_f1, wanted, hypotheses)) / len(wanted),
        distinct_1=distinct(hypotheses, 1),
        distinct_2=distinct(hypotheses, 2),
        slot_error_rate=missing / values if values else 0.0,
        values=values,
        missing_values=missing,
        prompts=len(prompts),
        references=sum(map(len, wanted)),
    )
