"""Pre-training of a BERT on public text."""
