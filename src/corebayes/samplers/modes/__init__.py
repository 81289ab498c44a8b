"""The search for modes: where else π_w, or the posterior of all rows, may be high."""
