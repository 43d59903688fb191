"""Learning a vocabulary of word pieces from public text."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Iterable, List, Set, Tuple

from edp_mx.data.columnar_corpus import repeated
from edp_mx.data.tokenization import split_tokens
from edp_mx.errors import UserError

SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST_WORD = 200  # characters; a longer word is unknown as a whole
Splitter = Callable[[str], List[str]]
_MAX_DISTINCT = 2_000_000  # of words and of tokens that are held at a time
_MAX_FED = 50_000_000  # words; the library counts pairs in 32 bits


def learn_pieces(
    lines: Iterable[str], *, size: int, lowercase: bool = True, min_count: int = 2
) -> Tuple[str, ...]:
    """Learn the special pieces, all characters of the text, and what stands together most often.

    Args:
        size: of the vocabulary; with little text it comes out smaller.
        min_count: pieces that are rarer are not made, apart from the characters.

    Raises:
        UserError: the text has no word, or `size` has no room for its characters.

    Guarantee: the same text gives the same pieces in the same order, in every process and with any
        number of threads. Every word of the text, up to `LONGEST_WORD` characters, can be spelled.
        The memory is bounded: beyond two million distinct words the rarest are given up, which
        costs no character.

    Departs: the trainer of `tokenizers` breaks ties by numbers of "##" characters that differ from
        run to run. Here all characters are handed to it in a fixed order, as if they were special
        pieces.
    """
    split = _word_splitter(lowercase)
    counts, alphabet = _count_words(lines, split)
    if not alphabet:
        raise UserError("the text to learn word pieces from has no word; give more text")
    characters = sorted(alphabet)
    # Punctuation and Chinese characters are words of their own: nothing continues with them.
    inside = [f"##{c}" for c in characters if len(split(f"a{c}")) == 1]
    fixed = [*SPECIAL_PIECES, *characters, *inside]
    if size < len(fixed):
        raise UserError(
            f"a vocabulary of {size} word pieces is too small: the {len(characters)} characters "
            f"of the text alone need {len(fixed)}; set at least that size or give cleaner text"
        )
    return _add_merges(fixed, counts, size, min_count)


def bert_steps(lowercase: bool) -> Tuple[Any, Any]:
    """Return `tokenizers`' normalizer and pre-tokenizer of a BERT, which cut text into words.

    Every punctuation mark and every Chinese character is a word of its own, and what cannot be seen
    is dropped. In lower case accents are dropped too.
    """
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    return BertNormalizer(lowercase=lowercase, strip_accents=lowercase), BertPreTokenizer()


def as_utf8(text: str) -> str:
    """Drop halves of surrogate pairs, which JSON may bring and no UTF-8 can hold."""
    return text.encode("utf-8", "ignore").decode("utf-8")


def _word_splitter(lowercase: bool) -> Splitter:
    normalizer, splitter = bert_steps(lowercase)
    return lambda text: [
        word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))
    ]


def _count_words(lines: Iterable[str], split: Splitter) -> Tuple[Counter[str], Set[str]]:
    """Count the words, and collect the characters of all of them."""
    tokens: Counter[str] = Counter()
    words: Counter[str] = Counter()
    alphabet: Set[str] = set()
    for line in lines:
        tokens.update(split_tokens(line))
        if len(tokens) > _MAX_DISTINCT:
            _fold(tokens, words, alphabet, split)
    _fold(tokens, words, alphabet, split)
    return words, alphabet


def _fold(tokens: Counter[str], words: Counter[str], alphabet: Set[str], split: Splitter) -> None:
    """Move the tokens' words into `words`; beyond the bound the rarest words are given up."""
    for token, count in tokens.items():
        for word in split(as_utf8(token)):
            alphabet.update(word)
            if len(word) <= LONGEST_WORD:
                words[word] += count
    tokens.clear()
    least = 1
    while len(words) > _MAX_DISTINCT:
        least += 1
        for word in [word for word, count in words.items() if count < least]:
            del words[word]


def _add_merges(
    fixed: List[str], counts: Counter[str], size: int, min_count: int
) -> Tuple[str, ...]:
    """Append the pieces that the library makes of the counted words to the fixed ones."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.pre_tokenizers import CharDelimiterSplit
    from tokenizers.trainers import WordPieceTrainer

    share = -(-sum(counts.values()) // _MAX_FED) or 1
    trainer = WordPieceTrainer(
        vocab_size=size,
        min_frequency=max(1, -(-min_count // share)),
        special_tokens=fixed,
        show_progress=False,
    )
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = CharDelimiterSplit(" ")
    fewer = ((word, count // share) for word, count in counts.items())
    tokenizer.train_from_iterator(repeated(fewer), trainer)
    ids = tokenizer.get_vocab()
    return tuple(sorted(ids, key=ids.__getitem__))
