"""Regressions: the density of a row given its linear predictors. A new family is one file here."""
