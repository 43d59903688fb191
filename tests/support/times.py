"""Rows of Table 2, made up."""


def times_row(corpus="atis", family="clc", workers=1, **changes):
    """What `experiments.table2` records of a row: three rounds of 4 of 70 steps."""
    seconds = {"sgd": [2.0, 1.0, 4.0], "edp_sgd": [2.2, 1.0, 4.8], "dp_sgd_loop": [6.0, 4.0, 8.0],
               "dp_sgd_ghost": [3.0, 1.25, 4.0]}  # fmt: skip
    return {
        "corpus": corpus, "family": family, "workers": workers, "threads": 2, "batch_size": 32,
        "n": 2246, "measured_on": 2246, "steps_per_epoch": 70, "steps": 4, "seconds": seconds,
        "processor_seconds": {key: [2 * each for each in times] for key, times in seconds.items()},
        "date": "2026-01-02", "machine": {"cores": 2, "processor": "Some CPU"}, "note": "",
        "command": "python -m experiments.table2", "hash": "0", **changes,
    }  # fmt: skip
