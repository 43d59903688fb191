"""Masked language modelling: prediction of pieces that the model cannot see."""
