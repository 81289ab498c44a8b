"""PyMC's models: their graphs as functions of θ and of any rows."""
