"""Masked language modelling: which pieces stand where the model cannot see them."""
