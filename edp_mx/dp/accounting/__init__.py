"""What was released, and what it costs in privacy. NumPy and SciPy only."""
