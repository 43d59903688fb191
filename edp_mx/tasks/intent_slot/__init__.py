"""Intents and slots: one label per utterance, one tag per token."""
