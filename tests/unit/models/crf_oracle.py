"""A CRF by enumeration of all tag sequences, in float64, one utterance at a time."""

import itertools

import numpy as np

from edp_mx.models.forward_backward import Chain


def random_chain(rng, num_tags, spread=1.5):
    """A chain with normal scores."""
    return Chain(
        rng.normal(0, spread, (num_tags, num_tags)),
        rng.normal(0, spread, num_tags),
        rng.normal(0, spread, num_tags),
    )


def features(path, num_tags):
    """Counts of a path: emissions (T, K), transitions (K, K), start (K,), end (K,)."""
    emissions, transitions = np.zeros((len(path), num_tags)), np.zeros((num_tags, num_tags))
    start, end = np.zeros(num_tags), np.zeros(num_tags)
    emissions[np.arange(len(path)), path] = 1
    for source, target in zip(path, path[1:]):
        transitions[source, target] += 1
    start[path[0]] = end[path[-1]] = 1
    return emissions, transitions, start, end


def enumerate_paths(emissions, chain):
    """All tag sequences of one utterance (T, K) with their scores."""
    num_tokens, num_tags = emissions.shape
    paths = list(itertools.product(range(num_tags), repeat=num_tokens))
    return paths, np.array([path_score(path, emissions, chain) for path in paths])


def path_score(path, emissions, chain):
    """Score of one tag sequence."""
    local = sum(emissions[token, tag] for token, tag in enumerate(path))
    moves = sum(chain.transitions[source, target] for source, target in zip(path, path[1:]))
    return chain.start[path[0]] + local + moves + chain.end[path[-1]]


def enumerated_loss(emissions, tags, chain):
    """Loss of one utterance and its gradients by emissions, transitions, start, end."""
    paths, scores = enumerate_paths(emissions, chain)
    probabilities = np.exp(scores - scores.max())
    log_partition = scores.max() + np.log(probabilities.sum())
    probabilities /= probabilities.sum()
    num_tags = emissions.shape[1]
    expected = [-count for count in features(tuple(tags), num_tags)]
    for path, probability in zip(paths, probabilities):
        for total, count in zip(expected, features(path, num_tags)):
            total += probability * count
    return log_partition - path_score(tuple(tags), emissions, chain), expected
