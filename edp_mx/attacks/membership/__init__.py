"""Attacks on membership: was this utterance in the training data?"""
