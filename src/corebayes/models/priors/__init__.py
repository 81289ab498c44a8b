"""Priors: those that people give, those that models have by default, and their table."""
