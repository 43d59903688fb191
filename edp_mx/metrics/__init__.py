"""How well intents and slots were understood, and texts generated; knows nothing of data."""
