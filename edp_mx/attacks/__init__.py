"""Attacks on the running system: audits that measure what leaks, and may refute what is claimed."""
