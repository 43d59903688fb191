"""The states of a model's frozen part, computed once for all utterances of a corpus."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable, Container, Dict, Iterator, List, Optional, Tuple

import numpy as np

from edp_mx.data.batching import Batch, PieceInputs, WordInputs
from edp_mx.data.encoding import EncodedCorpus, evaluation_batches
from edp_mx.data.stored_states import StoredStates
from edp_mx.dp.safeguards import frozen_digests
from edp_mx.models.encoder import Encoder, FrozenPart
from edp_mx.runtime.progress import Heartbeat, Progress, no_heartbeat, no_progress

PLACES = 48  # utterances of a batch; twice as many of short ones, whose products are faster then
_SHORT = 8
_READ_AT_ONCE = 512
_CHARACTERS = 16  # what the characters of an utterance's longest token are rounded up to

Shape = Tuple[int, ...]


@dataclass(eq=False)
class KnownStates:
    """The states that a process has stored so far, by a digest of what was read for them.

    Models with the same frozen weights, as the shadows of an attack are, compute each once.
    """

    places: Dict[bytes, Tuple[StoredStates, int]] = field(default_factory=dict)
    _weights: Dict[str, bytes] = field(default_factory=dict)

    def keep_to(self, encoder: Encoder) -> None:
        """Forget states that other frozen weights have computed."""
        weights = frozen_digests(encoder)
        if weights != self._weights:
            self._weights, self.places = weights, {}


def with_states(
    encoded: EncodedCorpus,
    frozen: FrozenPart,
    *,
    folder: Optional[Path] = None,
    heartbeat: Heartbeat = no_heartbeat,
    progress: Progress = no_progress,
    part: str = "",
    known: Optional[KnownStates] = None,
) -> EncodedCorpus:
    """Return the corpus with its states, which hold the data: their nameless file goes with us.

    Args:
        folder: on whose disk the file is.
        heartbeat: called before each batch.
        progress: put around the batches.
        part: what the corpus is, for people.
        known: of the same frozen part; what is stored here is added.

    Guarantee: the bytes of an utterance's states depend on what the model reads of it and on
        nothing else of the corpus. The shape of a batch and the place in it decide how a product
        rounds, so that both follow from the utterance: its batch has a fixed number of utterances
        of its own lengths, and a hash of it says where it stands among them, or at which place it
        may stand as well, since one utterance has the same bytes at both.
    """

    def compute(rows: List[int]) -> Tuple[np.ndarray, np.ndarray]:
        heartbeat("computing the outputs of the frozen layers")
        return frozen.states(_widened(encoded.batch(rows)))

    before = {} if known is None else known.places
    twins: Dict[bytes, List[int]] = {}

    def places_alike(shape: Shape, row: int) -> List[List[int]]:
        if shape not in frozen.places_alike:
            found: Dict[bytes, List[int]] = defaultdict(list)
            for place, states in enumerate(compute([row] * _places(shape))[0]):
                found[states.tobytes()].append(place)
            frozen.places_alike[shape] = list(found.values())
        return frozen.places_alike[shape]

    def made() -> Iterator[Tuple[np.ndarray, np.ndarray, np.ndarray]]:
        missing = _read_all(encoded, heartbeat, twins, before)
        for digest in twins.keys() & before.keys():
            stored, index = before[digest]
            yield np.array(twins[digest]), stored.counts[index : index + 1], stored.of(index)[None]
        batches = list(_batches(missing, twins, places_alike))
        for taken, rows in progress(batches, f"frozen layers, {part}", len(batches)):
            states, counts = compute(rows)
            for place, digest in taken.items():
                same = np.array(twins[digest])
                yield same, counts[place : place + 1], states[place : place + 1]

    states = StoredStates.write(made(), num_utterances=len(encoded), folder=folder)
    if known is not None:
        for digest, (first, *_) in twins.items():
            known.places.setdefault(digest, (states, first))
    return replace(encoded, states=states, sizes=states.counts)


def _read_all(
    encoded: EncodedCorpus,
    heartbeat: Heartbeat,
    twins: Dict[bytes, List[int]],
    before: Container[bytes],
) -> Dict[Shape, List[bytes]]:
    """Note in `twins` which utterances read alike, by a digest; return those not known `before`.

    They come by the shape of what is computed for them.
    """
    missing: Dict[Shape, List[bytes]] = defaultdict(list)
    for batch in evaluation_batches(encoded, _READ_AT_ONCE):
        heartbeat("reading what the frozen layers read")
        for row, index in enumerate(batch.indices.tolist()):
            shape, read = _read(batch, row)
            digest = hashlib.sha256(repr(shape).encode() + read).digest()
            if digest not in twins and digest not in before:
                missing[shape].append(digest)
            twins.setdefault(digest, []).append(index)
    return missing


def _batches(
    missing: Dict[Shape, List[bytes]],
    twins: Dict[bytes, List[int]],
    places_alike: Callable[[Shape, int], List[List[int]]],
) -> Iterator[Tuple[Dict[int, bytes], List[int]]]:
    """Yield what stands at the places of each batch, as far as they are taken, and its utterances.

    A place that no utterance takes is filled with any other of the batch.

    Args:
        places_alike: the places of a batch, together where an utterance has the same states.
    """
    for shape, digests in missing.items():
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
            yield taken, rows


def _places(shape: Shape) -> int:
    return 2 * PLACES if shape[0] <= _SHORT else PLACES


def _read(batch: Batch, row: int) -> Tuple[Shape, bytes]:
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
