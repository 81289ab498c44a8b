"""Bambi's models: as built-in ones where each piece has a counterpart, through PyMC where not."""
