"""Differentially private training of any Gluon network: mechanism, samplers, accounting."""
