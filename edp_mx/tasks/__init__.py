"""Tasks: each reads labels, and has a loss, scores and answers."""
