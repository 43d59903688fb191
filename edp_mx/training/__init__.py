"""The loop, its evaluation, its checkpoints, its logs."""
