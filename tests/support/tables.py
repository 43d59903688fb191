"""Tables that the product wrote."""

import csv


def read_table(path):
    """The rows of a CSV file, each a dict."""
    with open(path) as file:
        return list(csv.DictReader(file))
