"""Reasons for an infinite ε, inputs that may be assumed public, and the limits of any ε."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict

NO_MECHANISM = "no privacy mechanism ran"
FIXED_SEED = (
    "the seed was fixed (insecure_fixed_seed): the noise can be subtracted, Poisson draws are known"
)
NO_NOISE = "the noise multiplier is 0, so nothing is hidden"
VANISHING_NOISE = (
    "the noise becomes smaller than what float32 can add to a gradient of norm C * max alpha, so "
    "that part of it is never added"
)
COARSE_GRID = (
    "the noise is so small that float32 cannot hold the sums of all workers on the grid of "
    "hardened noise"
)
UNKNOWN_SCALES = (
    "the published noise ignores the layer scales, which are not known before the training begins "
    "(layer_scales_unit: norm), so that it is not known yet how little it is beside a gradient"
)
# The smallest noise of a worker, relative to the gradient it is added to, that float32 resolves: 16
# units in the last place. Below that, rounding and not the noise decides the release.
RESOLUTION = 2.0**-19
GRID_STEPS = 2.0**15  # standard deviations of hardened noise that float32 holds exactly, at least
LARGEST_NOISE = 14.0  # of hardened noise, in standard deviations


@dataclass(frozen=True)
class PrivateInput:
    """An input that reaches the model past the mechanism.

    Why ε is infinite, the condition that would make it finite, and a remedy for the user.
    """

    reason: str
    condition: str
    remedy: str


@dataclass(frozen=True)
class Declaration:
    """An input that reaches the model without noise, its origin, and who declared it public.

    Attributes:
        of: the input: words, labels, start or word vectors.
        said: the rest of the sentence.
        is_open: its source is unknown here, so that no ε covers it.
    """

    of: str
    said: str
    is_open: bool = False

    def __str__(self) -> str:
        return f"{self.of}: {self.said}"


PRIVATE_INPUTS: Dict[str, PrivateInput] = {
    "layer_scales": PrivateInput(
        "the layer scales are gradient norms of private data (first_batch)",
        "the layer scales had not been taken from private data",
        "take the layer scales from elsewhere: privacy.layer_scales ones, sqrt_dim and "
        "public_batch cost nothing, dp_release a little",
    ),
    "vocabulary": PrivateInput(
        "the vocabulary, characters and labels were read off the private training part",
        "the vocabulary, characters and labels were public",
        "bring a public vocabulary and label list: data.vocabulary and data.labels, source file (a "
        'list of labels that was read from the corpus counts once its line "private" is removed)',
    ),
    "start": PrivateInput(
        "the model starts from a run that was trained on the same corpus, or may have been, or "
        "from word vectors of its text (model.start_from, model.checkpoint, data.embeddings)",
        "the run that the model starts from, those before it and its word vectors had been trained "
        "on other utterances",
        "let model.start_from, model.checkpoint and data.embeddings name what was trained on "
        "another, public corpus",
    ),
    "lengths": PrivateInput(
        "batches were made by the lengths of private utterances (length_buckets)",
        "the lengths of all utterances were public",
        "make batches at random: training.length_buckets 0",
    ),
}
FIXED_SEED_REMEDY = "leave out privacy.insecure_fixed_seed, which is for tests only"

TAKEN_AS_PUBLIC = (  # by a plan that was made without the data
    "words, labels and what the model starts from are taken to be public, which a check with the "
    "data tells"
)
OTHER_MODELS = (
    "other models trained on the same data: the releases of this training alone were composed; "
    "`edp-mx budget` composes the ledgers of several, as if the settings of all were fixed before "
    "the first"
)
ALWAYS_OPEN = (
    "a vocabulary, character set or labels that were called public and were made from private text",
    "which utterances form the training part: it is taken as given (the split looks at labels)",
    "hyper-parameters chosen by other runs on the same data",
    OTHER_MODELS,
    "a stop decided from what the run showed: only the committed number of epochs is counted",
    "losses, validation scores, clipping statistics and times in the run's own logs (by the clock "
    "training.checkpoints.every_minutes divides the ledger, too)",
    "counts of the training part: of its utterances and of repeated ones in reports, of its texts "
    "in the origin.json of a run or an export",
)
BROUGHT = "word vectors, or a checkpoint, trained on private text"  # where none is named
FLOATING_POINT = (
    "noise drawn in floating point rather than from a true Gaussian: the last bits of what is "
    "released may say what it was added to (privacy.noise.gaussian: hardened closes that)"
)
GRID = (
    "what is left of floating point in hardened noise: less than 0.001 of epsilon for 10^12 "
    "numbers (docs/privacy.md, section 10)"
)
SEVERAL_UTTERANCES = (
    "a person with several utterances in the training part, or a text in several: the guarantee is "
    "one utterance's (a turn of a dialogue may stand in the prompts of later ones, too)"
)
USER_NAMES = "a person who speaks under several user names: the guarantee is one user name's"
SUMS = (
    "rounding inside a chunk: ghost clipping adds up the products of one chunk in float32 (chunks "
    "are added up in float64)"
)
ROUNDED_PRODUCTS = (
    "rounding to bfloat16: what the other utterances of a batch add may change with each that "
    "joins it, by some thousandths of C, and more the larger the batch (docs/privacy.md, section "
    "10)"
)
MASKS = (
    "dropout: where several utterances are clipped from one pass (ghost clipping), its masks are "
    "taken as drawn at random and unknown to everyone; MXNet's generator has 31-bit seeds"
)
EARLY_STOP = (
    "the run could stop early, by its score on private validation data: the epsilon given is that "
    "of all epochs that it might have run"
)
BEST_CHECKPOINT = "the checkpoint was chosen by its score on private validation data"
