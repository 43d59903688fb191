"""The states of a model's frozen part, computed once for all utterances of a corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Iterator, Optional, Tuple

import numpy as np

from edp_mx.data.encoding import EncodedCorpus, evaluation_batches
from edp_mx.data.states import StoredStates
from edp_mx.models.encoder import FrozenPart
from edp_mx.runtime.progress import Heartbeat, no_heartbeat

BATCH_SIZE = 128


def with_states(
    encoded: EncodedCorpus,
    frozen: FrozenPart,
    *,
    folder: Optional[Path] = None,
    heartbeat: Heartbeat = no_heartbeat,
) -> EncodedCorpus:
    """Return the corpus with its states, which hold the data: their nameless file goes with us.

    Args:
        folder: on whose disk the file lies.
        heartbeat: called before each batch.
    """

    def made() -> Iterator[Tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for batch in evaluation_batches(encoded, BATCH_SIZE):
            heartbeat("computing the outputs of the frozen layers")
            states, counts = frozen.states(batch)
            yield batch.indices, counts, states

    states = StoredStates.write(made(), num_utterances=len(encoded), folder=folder)
    return replace(encoded, states=states)
