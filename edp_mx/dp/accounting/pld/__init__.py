"""ε of Poisson-sampled steps from the distribution of their privacy loss (PLD)."""
