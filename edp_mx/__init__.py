"""Differentially private training of intent-and-slot models with eDP-SGD."""
