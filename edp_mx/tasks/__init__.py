"""What a model learns: a task reads labels, has a loss, scores, and answers."""
