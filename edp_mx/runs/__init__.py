"""Whole runs: from a configuration to a run directory, and back from a run directory."""
