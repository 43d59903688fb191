"""Heads started from the heads of labels that are alike in name."""

import numpy as np

from edp_mx.models.label_names import alike_tags, most_alike, named_rows, transitions_by_kind

THEIRS = ["O", "B-a.city", "I-a.city", "B-b.genre", "I-b.genre", "B-b.city_name", "I-b.city_name"]


def test_names_are_compared_by_their_words_and_rare_words_count_more():
    theirs = ["b.FindMovies", "b.PlayMovie", "b.PlaySong", "b.GetWeather"]
    assert most_alike(["GetWeather", "play_song", "movies_find", "sleep"], theirs) == [
        [3],
        [2],
        [0],
        [],
    ]


def test_a_tag_starts_from_the_same_part_of_a_type_alike():
    tags = alike_tags(["O", "B-genre", "I-genre", "B-city", "B-sleep"], THEIRS)
    assert tags == [[0], [3], [4], [1], [1, 3, 5]]  # the last: any beginning


def test_rows_are_means_of_the_rows_alike():
    rows = named_rows(np.float32([[1, 2], [3, 4], [5, 9]]), [[0, 1], [2], []])
    np.testing.assert_allclose(rows, [[2, 3], [5, 9], [3, 5]])


def test_transitions_keep_the_order_of_beginning_and_inside():
    scores = np.zeros((7, 7))
    for i, first in enumerate(THEIRS):
        for j, second in enumerate(THEIRS):
            if second[0] == "I" and first[2:] != second[2:]:
                scores[i, j] = -8
    made = transitions_by_kind(["O", "B-x", "I-x", "B-y", "I-y"], THEIRS, scores)
    expected = np.zeros((5, 5))
    expected[0, [2, 4]] = expected[1:3, 4] = expected[3:5, 2] = -8
    np.testing.assert_array_equal(made, expected)
