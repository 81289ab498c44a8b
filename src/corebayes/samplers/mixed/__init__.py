"""Draws of mixed models: coordinates, densities, and effects group by group."""
