"""Encoding and batching, of words and of word pieces, against loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.utterances import drawn_corpora, say

from edp_mx.data.batching import _small
from edp_mx.data.encoding import encode, evaluation_batches
from edp_mx.data.utterance import REPLY, Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import SPECIAL_PIECES, WordPiece
from edp_mx.errors import UserError

utterances = drawn_corpora(st.text("abAB", min_size=1, max_size=5), max_size=12)


@given(utterances, st.integers(1, 8), st.integers(1, 6), st.data())
def test_batch_equals_a_loop(corpus, max_tokens, max_characters, data):
    known = corpus[: data.draw(st.integers(1, len(corpus)))]
    vocabulary = Vocabulary.build(known)
    encoded = encode(corpus, vocabulary, max_tokens=max_tokens, max_characters=max_characters)
    indices = data.draw(st.lists(st.integers(0, len(corpus) - 1), min_size=1, max_size=6))
    batch = encoded.batch(indices)
    assert batch.indices.tolist() == indices and len(batch) == len(indices)
    arrays = (*batch.inputs, batch.lengths, batch.slots, batch.intents)
    assert {array.dtype for array in arrays} == {np.dtype("int32")}
    assert batch.indices.dtype == np.int64
    longest = max(min(len(corpus[i].tokens), max_tokens) for i in indices)
    assert batch.inputs.words.shape == batch.slots.shape == (len(indices), longest)
    for row, index in enumerate(indices):
        expected = corpus[index]
        tokens = expected.tokens[:max_tokens]
        assert batch.lengths[row] == len(tokens) == encoded.lengths[index]
        tags = [vocabulary.slot_id(tag) for tag in expected.slots[:max_tokens]]
        intent = vocabulary.intent_id(expected.intent)
        assert batch.intents[row] == max(intent, 0)
        for t in range(longest):
            if t >= len(tokens):
                assert batch.inputs.words[row, t] == batch.slots[row, t] == 0
                assert not batch.inputs.characters[row, t].any() and not batch.mask[row, t]
                continue
            ids = vocabulary.character_ids(tokens[t][:max_characters])
            assert batch.mask[row, t]
            assert batch.inputs.words[row, t] == vocabulary.word_id(tokens[t])
            assert batch.slots[row, t] == max(tags[t], 0)
            found = batch.inputs.characters[row, t].tolist()
            assert found[: len(ids)] == ids and not any(found[len(ids) :])


def test_labels_of_the_test_part_alone_are_no_crash():
    encoded = encode([say("a", intent="new")], Vocabulary.build([say("a")]))
    assert encoded.intent_ids.tolist() == [-1] and encoded.batch([0]).intents.tolist() == [0]


@given(utterances, st.integers(1, 5), st.integers(1, 4), st.booleans())
def test_evaluation_sees_each_utterance_once_in_order_of_size(
    corpus, batch_size, num_workers, has_pieces
):
    encoded = encode(corpus, vocabulary_of(corpus) if has_pieces else Vocabulary.build(corpus))
    seen = []
    for rank in range(num_workers):
        share = {"rank": rank, "num_workers": num_workers}
        batches = list(evaluation_batches(encoded, batch_size, **share))
        assert all(len(batch) <= batch_size for batch in batches)
        assert num_workers > 1 or all(len(batch) == batch_size for batch in batches[:-1])
        sizes = (batch.inputs.lengths if has_pieces else batch.lengths for batch in batches)
        lengths = [length for size in sizes for length in size]
        assert lengths == sorted(lengths)
        seen += [index for batch in batches for index in batch.indices]
    assert sorted(seen) == list(range(len(corpus)))


def test_storage_follows_the_tokens_not_their_characters():
    """One token of 30 characters 50,000 times: the table holds it once."""
    corpus = [say("x" * 30)] * 50_000
    encoded = encode(corpus, Vocabulary.build(corpus[:1]))
    arrays = [*vars(encoded).values(), *vars(encoded.table).values()]
    stored = sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
    assert encoded.table.characters.size == 30 and stored < 50_000 * 30


PIECES = ("a", "##a", "b", "##b", "ab", "##ab", "'", "e")
WORDPIECE = WordPiece((*SPECIAL_PIECES, *PIECES))

spelled = drawn_corpora(st.text("abz'", min_size=1, max_size=6), max_size=8)


def vocabulary_of(corpus, wordpiece=WORDPIECE, template=None):
    return Vocabulary.of_pieces(wordpiece, corpus, word_source="file", template=template)


@pytest.mark.parametrize("most", [127, 128, 129])
@pytest.mark.parametrize("has_pieces", [False, True])
def test_lengths_at_the_edge_of_a_number_s_type(most, has_pieces):
    corpus = [say("ab " * count) for count in (3, 127, 128, 129, 300)]
    vocabulary = vocabulary_of(corpus) if has_pieces else Vocabulary.build(corpus)
    encoded = encode(corpus, vocabulary, max_tokens=most, max_pieces=1000)
    assert encoded.lengths.tolist() == [min(len(u.tokens), most) for u in corpus]
    assert encoded.batch(range(5)).slots.shape == (5, most)


@pytest.mark.parametrize("largest", [0, 127, 128, 32767, 32768, 2**31 - 1])
def test_numbers_keep_their_value_in_a_small_type(largest):
    assert _small(np.array([1, largest])).tolist() == [1, largest]


# Templates, and their pieces before and after those of the utterance.
FRAMES = {
    None: (["[CLS]"], ["[SEP]"]),
    "{} [SEP] ab [MASK] e": (["[CLS]"], ["[SEP]", "ab", "[MASK]", "e", "[SEP]"]),
    "b [MASK] aba {}": (["[CLS]", "b", "[MASK]", "ab", "##a"], ["[SEP]"]),
}


@given(spelled, st.sampled_from([*FRAMES]), st.integers(1, 8), st.integers(1, 12), st.data())
def test_a_batch_of_pieces_equals_a_loop(corpus, template, max_tokens, room, data):
    vocabulary = vocabulary_of(corpus, template=template)
    before, after = ([WORDPIECE.pieces.index(p) for p in side] for side in FRAMES[template])
    max_pieces = room + len(before) + len(after)
    encoded = encode(corpus, vocabulary, max_tokens=max_tokens, max_pieces=max_pieces)
    indices = data.draw(st.lists(st.integers(0, len(corpus) - 1), min_size=1, max_size=6))
    batch = encoded.batch(indices)
    pieces, lengths, firsts = batch.inputs
    assert {array.dtype for array in batch.inputs} == {np.dtype("int32")}
    assert pieces.shape == (len(indices), lengths.max()) and pieces.shape[1] <= max_pieces
    assert firsts.shape == batch.slots.shape
    for row, index in enumerate(indices):
        expected, places = [*before], []
        for place, spelled in enumerate(corpus[index].tokens[:max_tokens]):
            ids = WORDPIECE.ids(spelled)
            if place == 0:
                ids = ids[:room]
            if len(expected) + len(ids) + len(after) > max_pieces:
                break
            places.append(len(expected))
            expected += ids
        expected += after
        assert lengths[row] == len(expected)
        assert encoded.sizes[index] == len(expected) - len(before) - len(after)
        assert pieces[row, : lengths[row]].tolist() == expected
        assert not pieces[row, lengths[row] :].any()
        assert batch.lengths[row] == encoded.lengths[index] == len(places) >= 1
        assert (
            firsts[row, : len(places)].tolist() == places and not firsts[row, len(places) :].any()
        )
        tags = [vocabulary.slot_id(tag) for tag in corpus[index].slots[: len(places)]]
        assert batch.slots[row, : len(places)].tolist() == tags
    kept = encoded.lengths
    assert encoded.num_cut == sum(len(u.tokens) > n for u, n in zip(corpus, kept))


def test_hard_tokens_keep_their_tags():
    """Each token's tag stands at its first piece, whatever the token is made of."""
    tokens = ("don't", "café", "7:30", "zzz", "\u200b", "ab" * 40, "[CLS]", "ab")
    tags = ("O", "B-x", "I-x", "B-y", "O", "B-x", "O", "B-y")
    corpus = [Utterance(tokens, tags, "i")]
    batch = encode(corpus, vocabulary_of(corpus)).batch([0])
    firsts = batch.inputs.firsts[0]
    assert batch.lengths.tolist() == [8] and (np.diff(firsts) >= 1).all()
    spelled = [WORDPIECE.pieces[batch.inputs.pieces[0, place]] for place in firsts]
    assert spelled == ["[UNK]", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "ab", "[UNK]", "ab"]
    assert (batch.inputs.pieces[0] == WORDPIECE.special_ids.cls).sum() == 1
    vocabulary = vocabulary_of(corpus)
    assert [vocabulary.slots[i] for i in batch.slots[0]] == list(tags)


def test_a_template_that_leaves_no_room_is_refused():
    corpus = [Utterance(("a",), ("O",), "i")]
    with pytest.raises(UserError, match="max_pieces is 6, of which model.template takes 6"):
        encode(corpus, vocabulary_of(corpus, template="{} [SEP] ab [MASK] e"), max_pieces=6)


@pytest.mark.parametrize("template", FRAMES)
def test_a_vocabulary_of_pieces_survives_its_file(template):
    corpus = [Utterance(("a", "b"), ("B-x", "O"), "i")]
    vocabulary = vocabulary_of(corpus, template=template)
    again = Vocabulary.from_json(vocabulary.to_json())
    assert again == vocabulary and again.tokenizer.ids("ab") == WORDPIECE.ids("ab")
    assert vocabulary.is_public is False  # the labels were read off the training part


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=5),
       st.integers(1, 12), st.integers(1, 20))  # fmt: skip
def test_a_prompt_loses_its_beginning_and_never_the_reply_s(sizes, max_tokens, room):
    """As many of the first tokens as must go; after them the end is cut as of any utterance."""
    corpus = [
        plain(("aba",) * prompt + (REPLY,) + ("ab", "abab") * reply) for prompt, reply in sizes
    ]
    vocabulary = vocabulary_of(corpus)
    encoded = encode(corpus, vocabulary, max_tokens=max_tokens, max_pieces=room + 2)
    lost = encoded.skips if encoded.skips is not None else [0] * len(corpus)
    for (prompt, _), utterance, skipped, kept in zip(sizes, corpus, lost, encoded.lengths):
        tokens = list(utterance.tokens)
        counts = [1 if token == REPLY else len(WORDPIECE.ids(token)) for token in tokens]
        gone = 0
        while gone < prompt and (len(tokens) - gone > max_tokens or sum(counts[gone:]) > room):
            gone += 1
        end = gone
        while (
            end < len(tokens)
            and end - gone < max_tokens
            and (sum(counts[gone : end + 1]) <= room or end == gone)
        ):
            end += 1
        assert (skipped, kept) == (gone, end - gone)
    batch = encoded.batch(range(len(corpus)))
    for row, (utterance, skipped, kept) in enumerate(zip(corpus, lost, encoded.lengths)):
        shown = utterance.tokens[skipped : skipped + kept]
        ids = [WORDPIECE.special_ids.sep if t == REPLY else WORDPIECE.ids(t)[0] for t in shown]
        firsts = batch.inputs.firsts[row, :kept]
        assert batch.inputs.pieces[row, firsts].tolist() == ids


@pytest.mark.parametrize(("max_tokens", "room"), [(3, 99), (99, 4), (9, 99)])
@pytest.mark.parametrize("end", [(), (REPLY,), (REPLY, *["ab"] * 9, "abab")])
def test_a_text_to_continue_keeps_its_end(max_tokens, room, end):
    tokens = ("aba", "ab", "abab", "ab", "aba", *end)
    encoded = encode([plain(tokens)], vocabulary_of([plain(tokens)]), max_tokens=max_tokens,
                     max_pieces=room + 2, is_continued=True)  # fmt: skip
    counts = [1 if token == REPLY else len(WORDPIECE.ids(token)) for token in tokens]
    kept = max(n for n in range(1, len(tokens) + 1)
               if n <= max_tokens and sum(counts[-n:]) <= room)  # fmt: skip
    skipped = 0 if encoded.skips is None else encoded.skips[0]
    assert (skipped, encoded.lengths[0]) == (len(tokens) - kept, kept)
    assert encoded.num_begun_later == (skipped > 0)
    assert not encoded.num_cut


def test_a_prompt_that_is_lost_to_its_reply_is_counted():
    corpus = [plain(("a",) * prompt + (REPLY,) + ("b",) * reply)
              for prompt, reply in ((2, 1), (2, 2), (2, 3), (1, 9))]  # fmt: skip
    encoded = encode(corpus, vocabulary_of(corpus), max_tokens=4)
    assert (encoded.num_begun_later, encoded.num_without_prompt) == (3, 2)
    assert encode(corpus, vocabulary_of(corpus)).num_without_prompt == 0


def plain(tokens):
    return Utterance(tokens, ("O",) * len(tokens), "i")
