"""Releases, and their cost in privacy. NumPy and SciPy only."""
