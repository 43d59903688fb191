"""BLEU, NIST and ROUGE-L of texts, by the libraries of the extra `generation`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, List, Sequence

from edp_mx.errors import UserError

NIST_ORDER = 5  # the longest n-grams of NIST

References = Sequence[Sequence[str]]  # the texts that would each be right, for each hypothesis


def bleu(references: References, hypotheses: Sequence[str]) -> float:
    """Return the BLEU of a corpus as a ratio, not in per cent.

    Source: sacrebleu's defaults: up to four words, tokens of mteval-v13a, case kept, counts of 0
        smoothed exponentially.
    """
    most = max(map(len, references))
    streams = [[each[i] if i < len(each) else None for each in references] for i in range(most)]
    score = imported("sacrebleu.metrics").BLEU().corpus_score(list(hypotheses), streams)
    return float(score.score) / 100


def nist(references: References, hypotheses: Sequence[str]) -> float:
    """Return the NIST score of a corpus, whose n-grams of up to five words weigh by their rarity.

    Units: bits per n-gram, added up over the lengths; not a ratio.

    Edge cases: lengths of which no hypothesis has an n-gram add nothing.

    Source: Doddington 2002, by nltk, on the tokens that BLEU reads.
    """
    tokenize = imported("sacrebleu.tokenizers.tokenizer_13a").Tokenizer13a()
    found: List[List[str]] = [tokenize(text).split() for text in hypotheses]
    wanted = [[tokenize(text).split() for text in texts] for texts in references]
    longest = min(NIST_ORDER, max(map(len, found)))
    if longest == 0:
        return 0.0
    module = imported("nltk.translate.nist_score")
    return float(module.corpus_nist(wanted, found, n=longest))


def rouge_l(references: References, hypotheses: Sequence[str]) -> float:
    """Return the mean F1 of the longest common subsequence with the nearest reference, a ratio.

    Source: Lin 2004, by rouge-score: words in lower case, without stemming.
    """
    scorer = imported("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    scores = [
        scorer.score_multi(texts, hypothesis)["rougeL"].fmeasure
        for texts, hypothesis in zip(references, hypotheses)
    ]
    return float(sum(scores) / len(scores))


def imported(name: str) -> Any:
    """Import a module of an optional library.

    Raises:
        UserError: the library is not installed; the sentence says how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise UserError(
            f"the scores of generated text need {error.name}, which is not installed: "
            "pip install 'edp_mx[generation]'"
        ) from error
