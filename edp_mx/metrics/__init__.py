"""How well intents and slots were understood. NumPy only at most; knows nothing of data."""
