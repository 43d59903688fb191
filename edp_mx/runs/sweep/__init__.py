"""Sweeps: many runs that differ in a few settings, and the best of them on validation."""
