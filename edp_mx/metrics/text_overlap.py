"""Words that generated texts share with their references, and how varied their words are."""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from typing import Any, List, Sequence
from unicodedata import category

from edp_mx.errors import UserError

NIST_ORDER = 5  # the longest n-grams of NIST
_PUNCTUATION = re.compile(r"[!\"#$%&()*+,\-./:;<=>?@\[\]\\^`{|}~_']")
_ARTICLES = re.compile(r"\b(a|an|the)\b")

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
    Departs: rouge-score knows the letters a to z alone, so that no other alphabet has a word.
    """
    scorer = imported("rouge_score.rouge_scorer").RougeScorer(["rougeL"], tokenizer=_Words())
    scores = [
        scorer.score_multi(texts, hypothesis)["rougeL"].fmeasure
        for texts, hypothesis in zip(references, hypotheses)
    ]
    return float(sum(scores) / len(scores))


class _Words:
    """The words of rouge-score in any alphabet: letters and digits, and the marks on them."""

    def tokenize(self, text: str) -> List[str]:
        """See the class.

        Example:
            >>> _Words().tokenize("Where's the Café_2? \u0928\u093f")
            ['where', 's', 'the', 'café', '2', '\u0928\u093f']
        """
        return "".join(char if _is_of_word(char) else " " for char in text.lower()).split()


def _is_of_word(char: str) -> bool:
    return category(char)[0] in "LMN"


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


def normalized_words(text: str) -> List[str]:
    """Return the words of a text in lower case, without punctuation and articles.

    Example:
        >>> normalized_words("The cat's on a mat!")
        ['cat', 's', 'on', 'mat']
    """
    return _ARTICLES.sub(" ", _PUNCTUATION.sub(" ", text.lower())).split()


def word_f1(references: Sequence[str], hypothesis: str) -> float:
    """Return the F1 of the words of a reply, a ratio: the best over its references.

    Words count as often as they occur; their order does not matter.

    Edge cases: 0 where nothing is shared, also of two empty texts.

    Source: ConvAI2 (Dinan et al. 2019), as ParlAI computes it.
    """
    found = Counter(normalized_words(hypothesis))
    return max(_f1(Counter(normalized_words(reference)), found) for reference in references)


def distinct(hypotheses: Sequence[str], n: int) -> float:
    """Return the number of different n-grams ÷ that of all n-grams, over all hypotheses.

    Words are in lower case and end at blanks.

    Edge cases: 0 where there is no n-gram.

    Source: Li et al. 2016, distinct-1 and distinct-2.
    Departs: they divide by the number of words for each n; n-grams are common now.

    Example:
        >>> distinct(["I am", "I am here"], 1), distinct(["I am", "I am here"], 2)
        (0.6, 0.6666666666666666)
    """
    counts: Counter = Counter()
    for text in hypotheses:
        words = text.lower().split()
        counts.update(zip(*(words[i:] for i in range(n))))
    total = sum(counts.values())
    return len(counts) / total if total else 0.0


def _f1(reference: Counter, hypothesis: Counter) -> float:
    shared = sum((reference & hypothesis).values())
    return 2 * shared / (sum(reference.values()) + sum(hypothesis.values())) if shared else 0.0
