"""Attacks on the running system: audits that measure leakage, and may refute a claim."""
