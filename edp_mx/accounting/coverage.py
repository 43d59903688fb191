"""What makes ε infinite, what may be granted, and what no ε of a run speaks of."""

from __future__ import annotations

from typing import List, Optional, Tuple

from edp_mx.errors import UserError

SCALES_SOURCES = ("ones", "sqrt_dim", "public_batch", "dp_release", "first_batch")

NO_MECHANISM = "no privacy mechanism ran"
FIXED_SEED = (
    "the seed was fixed (insecure_fixed_seed): the noise can be subtracted, Poisson draws are known"
)
VANISHING_NOISE = (
    "in the last epochs the noise is smaller than float32 can add to a gradient of norm C, so that "
    "nothing was added"
)
RESOLUTION = 2.0**-23  # of float32, relative

# choice -> (why ε is ∞, what would make it finite)
PRIVATE_SCALES = (
    "the layer scales are gradient norms of private data (first_batch)",
    "the layer scales had not been taken from private data",
)
PRIVATE_VOCABULARY = (
    "the vocabulary, characters and labels were read off the private training part",
    "the vocabulary, characters and labels were public",
)

PRIVATE_LENGTHS = (
    "batches were made by the lengths of private utterances (length_buckets)",
    "the lengths of all utterances were public",
)

ALWAYS_OPEN = (
    "a vocabulary, character set or labels that were called public and were made from private text",
    "which utterances form the training part: it is taken as given (the split looks at labels)",
    "hyper-parameters chosen by other runs on the same data",
    "a stop decided from what the run showed: only the committed number of epochs is counted",
    "word vectors, or a checkpoint, trained on private text",
    "losses, validation scores and clipping statistics in the run's own logs",
    "noise drawn in floating point rather than from a true Gaussian",
)
MASKS = (
    "dropout: where several utterances are clipped from one pass (privacy.per_example ghost), its "
    "masks are taken as drawn at random and unknown to everyone; MXNet's generator has 31-bit seeds"
)
EARLY_STOP = "the run could stop early, by its score on private validation data"
BEST_CHECKPOINT = "the checkpoint was chosen by its score on private validation data"


def private_inputs(
    *, scales_source: str, vocabulary_is_public: bool, uses_lengths: bool
) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """What private data entered around the mechanism.

    Returns:
        The reasons why ε is ∞, and the conditions under which it would not be, pairwise.

    Raises:
        UserError: a source of scales that nobody has judged.
    """
    if scales_source not in SCALES_SOURCES:
        raise UserError(
            f"scales_source is {scales_source!r}; choose one of {', '.join(SCALES_SOURCES)}"
        )
    found = []
    if scales_source == "first_batch":
        found.append(PRIVATE_SCALES)
    if not vocabulary_is_public:
        found.append(PRIVATE_VOCABULARY)
    if uses_lengths:
        found.append(PRIVATE_LENGTHS)
    return tuple(reason for reason, _ in found), tuple(condition for _, condition in found)


def not_covered(
    *,
    best_checkpoint_on_validation: bool,
    stops_early: bool,
    worker_noise_multiplier: Optional[float],
    clips_examples: bool = False,
) -> Tuple[str, ...]:
    """What must be said beside every ε of PRIVACY, "What ε does not cover".

    Args:
        best_checkpoint_on_validation: the released weights were chosen on private data.
        stops_early: training could end before its epochs, by its validation score.
        worker_noise_multiplier: the effective one in a single worker's messages, if any.
        clips_examples: the gradient of each utterance is clipped, not that of a micro-batch.
    """
    texts: List[str] = [BEST_CHECKPOINT] if best_checkpoint_on_validation else []
    if stops_early:
        texts.append(EARLY_STOP)
    if worker_noise_multiplier is not None:
        texts.append(
            "someone who sees the messages of a single worker: there the effective noise "
            f"multiplier is only {worker_noise_multiplier:.4g} at epoch 0"
        )
    if clips_examples:
        texts.append(MASKS)
    return (*texts, *ALWAYS_OPEN)
