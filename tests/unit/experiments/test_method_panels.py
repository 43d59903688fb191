"""What the methods of Table 1 pay, as it is drawn."""

from support.records import changed, record_of

from experiments.pages.method_panels import processor_seconds_of
from experiments.tables.query import query


def entry(*columns):
    """The entry of DP-SGD whose runs have these processor seconds by epoch; None: not written."""
    by_epoch = [
        None if c is None else {"epoch": [1, 2, 3], "processor_seconds": c} for c in columns
    ]
    records = [
        changed(record_of(**{"training.seed": seed}), by_epoch=each)
        for seed, each in enumerate(by_epoch)
    ]
    (found,) = query(records).values()
    return found


def test_seconds_are_the_median_of_the_epochs_that_were_not_interrupted():
    assert processor_seconds_of(entry([9.0, 2.0, 3.0])) == (3.0, 3.0, 3.0)
    assert processor_seconds_of(entry([9.0, None, 2.0], [1.0, 1.5, None], None)) == (
        3.375,
        1.25,
        5.5,
    )


def test_seconds_that_no_record_has_are_unknown():
    assert processor_seconds_of(entry(None)) is None
    assert processor_seconds_of(entry([None, None, None])) is None
