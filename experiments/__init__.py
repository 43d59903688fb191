"""Makers of the papers' tables, not installed: `python -m experiments.table1` and so on."""
