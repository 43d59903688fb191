"""Encoders (CLC, BERT, GPT-2), heads, CRF, and checkpoints; one loss value per example."""
