"""The task `causal_lm`: each piece of a text from those before it."""
