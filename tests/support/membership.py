"""Scores of made-up models, for tests of the attacks."""

import numpy as np

from edp_mx.attacks.membership.scores import MembershipScores, Origin
from edp_mx.attacks.membership.signals import TOP_INTENTS, TOP_TOKENS, Signals, log_odds_of


def made_signals(generator, is_member, *, gap):
    """Signals of utterances whose losses are log-normal; members' are smaller by e^−gap."""
    size = len(is_member)
    shift = gap * np.asarray(is_member, float)

    def losses():
        return np.exp(generator.normal(-1.0 - shift, 1.0))

    intent, slot = losses(), losses()
    top = np.sort(generator.dirichlet(np.ones(TOP_INTENTS), size))[:, ::-1]
    top[:, 0] = np.exp(-intent)
    sure = np.sort(np.exp(-slot[:, None] * generator.random((size, TOP_TOKENS))), axis=1)
    own = {"intent_top": top, "slot_top": sure, "intent_loss": intent, "slot_loss": slot,
           "loss": intent + slot, "log_odds": log_odds_of(intent + slot), "sequence_score": -slot,
           "sequence_margin": 1 / slot}  # fmt: skip
    rest = {name: generator.normal(size=size) for name in Signals._fields if name not in own}
    return Signals(**own, **rest)


def made_scores(generator, members, *, gap, reference=0, weights="a" * 64):
    """As many members as non-members, members' losses smaller by e^−gap."""
    is_member = np.repeat([True, False], [members, members + reference])
    is_reference = np.repeat([False, True], [2 * members, reference])
    return MembershipScores(
        signals=made_signals(generator, is_member, gap=gap),
        is_member=is_member,
        is_reference=is_reference,
        ids=tuple(f"u/{i}" for i in range(len(is_member))),
        intents=tuple(generator.choice(["play", "call"], len(is_member)).tolist()),
        origin=Origin(weights=weights, corpus="made", seed=3, is_balanced=False),
    )
