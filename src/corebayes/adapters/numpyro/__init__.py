"""NumPyro's models: their densities taken apart by one run."""
