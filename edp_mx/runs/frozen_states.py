"""The states of a model's frozen part, computed once for all utterances of a corpus."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np

from edp_mx.data.batching import Batch, PieceInputs, WordInputs
from edp_mx.data.encoding import EncodedCorpus, evaluation_batches
from edp_mx.data.stored_states import StoredStates
from edp_mx.models.encoder import FrozenPart
from edp_mx.runtime.progress import Heartbeat, Progress, no_heartbeat, no_progress

PLACES = 48  # utterances of a batch; twice as many of short ones, whose products are faster then
_SHORT = 8
_READ_AT_ONCE = 512
_CHARACTERS = 16  # what the characters of an utterance's longest token are rounded up to


def with_states(
    encoded: EncodedCorpus,
    frozen: FrozenPart,
    *,
    folder: Optional[Path] = None,
    heartbeat: Heartbeat = no_heartbeat,
    progress: Progress = no_progress,
    part: str = "",
) -> EncodedCorpus:
    """Return the corpus with its states, which hold the data: their nameless file goes with us.

    Args:
        folder: on whose disk the file is.
        heartbeat: called before each batch.
        progress: put around the batches.
        part: what the corpus is, for people.

    Guarantee: the bytes of an utterance's states depend on what the model reads of it and on
        nothing else of the corpus. The shape of a batch and the place in it decide how a product
        rounds, so that both follow from the utterance: its batch has a fixed number of utterances
        of its own lengths, and a hash of it says where it stands among them, or at which place it
        may stand as well, since one utterance has the same bytes at both.
    """

    def compute(rows: List[int]) -> Tuple[np.ndarray, np.ndarray]:
        heartbeat("computing the outputs of the frozen layers")
        return frozen.states(_widened(encoded.batch(rows)))

    def places_alike(shape: Tuple[int, ...], row: int) -> List[List[int]]:
        if shape not in frozen.places_alike:
            found: Dict[bytes, List[int]] = defaultdict(list)
            for place, states in enumerate(compute([row] * _places(shape))[0]):
                found[states.tobytes()].append(place)
            frozen.places_alike[shape] = list(found.values())
        return frozen.places_alike[shape]

    def made() -> Iterator[Tuple[np.ndarray, np.ndarray, np.ndarray]]:
        batches = list(_batches(encoded, heartbeat, places_alike))
        for twins, rows in progress(batches, f"frozen layers, {part}", len(batches)):
            states, counts = compute(rows)
            for place, same in twins.items():
                yield np.array(same), counts[place : place + 1], states[place : place + 1]

    states = StoredStates.write(made(), num_utterances=len(encoded), folder=folder)
    return replace(encoded, states=states, sizes=states.counts)


def _batches(
    encoded: EncodedCorpus,
    heartbeat: Heartbeat,
    places_alike: Callable[[Tuple[int, ...], int], List[List[int]]],
) -> Iterator[Tuple[Dict[int, List[int]], List[int]]]:
    """Yield batches, and by the places that are taken in each the utterances which read like that.

    A place that no utterance takes is filled with any other of the batch.

    Args:
        places_alike: the places of a batch, together where an utterance has the same states.
    """
    twins: Dict[bytes, List[int]] = {}
    found: Dict[Tuple[int, ...], List[bytes]] = defaultdict(list)  # by what they compute
    for batch in evaluation_batches(encoded, _READ_AT_ONCE):
        heartbeat("reading what the frozen layers read")
        for row, index in enumerate(batch.indices.tolist()):
            shape, read = _read(batch, row)
            digest = hashlib.sha256(repr(shape).encode() + read).digest()
            if digest not in twins:
                found[shape].append(digest)
            twins.setdefault(digest, []).append(index)
    for shape, digests in found.items():
        places = _places(shape)
        waiting: List[List[bytes]] = [[] for _ in range(places)]
        for digest in digests:
            waiting[digest[0] % places].append(digest)
        groups = [[place] for place in range(places)]
        if max(map(len, waiting)) > 1 + -(-len(digests) // places):  # to ask takes a batch itself
            groups = places_alike(shape, twins[digests[0]][0])
        queues = [[digest for place in group for digest in waiting[place]] for group in groups]
        while any(queues):
            taken: Dict[int, bytes] = {}
            for group, queue in zip(groups, queues):
                taken.update(zip(group, queue))
                del queue[: len(group)]
            some = twins[next(iter(taken.values()))][0]
            rows = [twins[taken[i]][0] if i in taken else some for i in range(places)]
            yield {place: twins[digest] for place, digest in taken.items()}, rows


def _places(shape: Tuple[int, ...]) -> int:
    return 2 * PLACES if shape[0] <= _SHORT else PLACES


def _read(batch: Batch, row: int) -> Tuple[Tuple[int, ...], bytes]:
    """Return the shape of what the model computes for an utterance, and all that it reads of it.

    A BERT computes for pieces, of which it copies those of the tokens.
    """
    tokens, inputs = int(batch.lengths[row]), batch.inputs
    if isinstance(inputs, WordInputs):
        characters = inputs.characters[row, :tokens]  # (T, C)
        longest = int((characters > 0).sum(axis=1).max(initial=0))
        words = inputs.words[row, :tokens]
        return (tokens, _rounded(longest)), words.tobytes() + characters[:, :longest].tobytes()
    assert isinstance(inputs, PieceInputs)
    pieces = int(inputs.lengths[row])
    read = inputs.pieces[row, :pieces], inputs.firsts[row, :tokens]
    return (pieces,), b"".join(each.tobytes() for each in read)


def _widened(batch: Batch) -> Batch:
    """Give tokens room for as many characters as `_read` says; pieces have no such room."""
    if not isinstance(batch.inputs, WordInputs):
        return batch
    words, characters = batch.inputs
    missing = _rounded(characters.shape[2]) - characters.shape[2]
    padded = np.pad(characters, ((0, 0), (0, 0), (0, missing)))  # (M, T, C)
    return replace(batch, inputs=WordInputs(words, padded))


def _rounded(characters: int) -> int:
    return max(1, -(-characters // _CHARACTERS)) * _CHARACTERS
