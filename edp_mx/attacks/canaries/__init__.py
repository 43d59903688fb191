"""Attacks on canaries: secrets that were trained on, looked for in the model."""
