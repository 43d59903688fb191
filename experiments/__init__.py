"""What makes the papers' tables, and is not installed: `python -m experiments.table1` and so on."""
