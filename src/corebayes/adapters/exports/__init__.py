"""Coresets handed over to NumPyro, PyMC, Stan and plain tables, checked against our density."""
