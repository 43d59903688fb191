"""Classification: one label per text."""
