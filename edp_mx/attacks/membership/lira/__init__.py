"""LiRA: shadow models with and without each utterance, and how likely they make its loss."""
