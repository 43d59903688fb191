"""Intent-and-slot models: encoders (CLC), heads, CRF, and one loss value per example."""
