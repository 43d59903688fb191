"""A trained model behind HTTP."""
