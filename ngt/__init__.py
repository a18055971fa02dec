"""Noise-Guided Transport: imitation learning from random priors, and the machinery around it."""
