"""Who is in which step: units, shuffled and Poisson draws, and how they are dealt to workers."""
