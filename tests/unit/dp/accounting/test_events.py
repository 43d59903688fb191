"""What was released: merging, refusals, and the multiplier that each pair of neighbours wants."""

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import releases
from support.refusals import one_sentence

from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.plan import Plan

EVENTS = st.one_of(
    st.builds(Event, st.just("shuffle"), st.sampled_from([0.0, 1.0, 2.0]), st.integers(0, 3)),
    st.builds(
        Event,
        st.just("poisson"),
        st.sampled_from([1.0, 2.0]),
        st.integers(0, 3),
        st.sampled_from([0.1, 1.0]),
    ),
)


release_with = partial(releases.release_with, max_grad_norm=0.5, adjacency="zero_out")


@given(st.lists(EVENTS, max_size=12))
def test_merging_keeps_every_step_in_its_place(events):
    def unrolled(events):
        return [
            (e.sampler, e.effective_noise_multiplier, e.sample_rate)
            for e in events
            for _ in range(e.count)
        ]

    composition = Composition("zero_out", events)
    assert unrolled(composition.events) == unrolled(events)
    for event, following in zip(composition.events, composition.events[1:]):
        assert unrolled([event])[:1] != unrolled([following])[:1]
    grown = Composition("zero_out")
    for event in events:
        grown = Composition("zero_out", (*grown.events, event))
    assert grown == composition


@pytest.mark.parametrize(
    "arguments, word",
    [
        (("rollover", 1.0), "sampler"),
        (("poisson", -1.0), "effective_noise_multiplier"),
        (("poisson", math.nan), "effective_noise_multiplier"),
        (("poisson", math.inf), "effective_noise_multiplier"),
        (("poisson", 1.0, -1), "count"),
        (("poisson", 1.0, 1.0), "count"),
        (("poisson", 1.0, True), "count"),
        (("poisson", 1.0, 1, -0.1), "sample_rate"),
        (("poisson", 1.0, 1, 1.1), "sample_rate"),
        (("poisson", 1.0, 1, math.nan), "sample_rate"),
        (("shuffle", 1.0, 1, 0.1), "shuffle"),
    ],
)
def test_impossible_events_are_refused_by_name(arguments, word):
    one_sentence(word, Event, *arguments)


def test_an_unknown_pair_of_neighbours_is_refused():
    one_sentence("neighbours", Composition, "add_remove")


def composition_of(release, *, z, decay, epochs, steps=1):
    plan = Plan(release, z, decay, epochs, delta=1e-5, steps_per_epoch=steps)
    return plan.composition(plan.entries())


@pytest.mark.parametrize("steps", [1, 50])
def test_shuffled_epochs_count_epochs_whatever_the_steps(steps):
    release = release_with()
    found = composition_of(release, z=2.0, decay=Decay("linear", 0.5), epochs=3, steps=steps)
    multipliers = [event.effective_noise_multiplier for event in found.events]
    assert multipliers == pytest.approx([2.0, 2 / 1.5, 1.0])
    assert {event.count for event in found.events} == {1}
    steady = composition_of(release, z=2.0, decay=Decay(), epochs=9, steps=steps)
    assert steady.events == (Event("shuffle", 2.0, 9),)


@pytest.mark.parametrize(
    "changes, neighbours, factor",
    [
        ({}, "zero_out", 1.0),
        ({"adjacency": "replace_one"}, "replace_in_mean", 1.0),
        ({"adjacency": "replace_one", "micro_batch_size": 1}, "replace_in_mean", 1.0),
        ({"adjacency": "replace_one", "unit": "utterance"}, "replace_one", 2.0),
        ({"adjacency": "replace_one", "unit": "user"}, "replace_one", 2.0),
        ({"unit": "user"}, "zero_out", 1.0),
    ],
)
def test_poisson_steps_are_relative_to_what_one_record_adds(changes, neighbours, factor):
    release = release_with(**changes, sampler="poisson", sample_rate=0.25)
    found = composition_of(release, z=1.5, decay=Decay("exponential", 0.1), epochs=2, steps=7)
    assert found.neighbours == neighbours == release.neighbours
    assert [event.count for event in found.events] == [7, 7]
    assert found.events[1].effective_noise_multiplier == pytest.approx(
        1.5 * math.exp(-0.1) * factor
    )
    assert found.events[0].sample_rate == 0.25


def test_a_rate_of_0_draws_nobody_and_costs_nothing():
    drawn = Event("poisson", 1.0, 10, 0.1)
    for z in (0.0, 1.0):
        steps = Composition("zero_out", [Event("poisson", z, 100, 0.0), drawn])
        assert steps.events == (drawn,)
    release = release_with(sampler="poisson", sample_rate=0.0)
    found = composition_of(release, z=1.0, decay=Decay(), epochs=3, steps=100)
    assert found == Composition("zero_out")
