"""Per-example norms and clipped sums without per-example gradients, one file a layer type."""
