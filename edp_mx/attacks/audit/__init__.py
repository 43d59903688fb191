"""Audits of the running system, which may refute the ε that is claimed."""
