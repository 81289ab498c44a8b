"""Mixed regressions: coefficients that partly differ from group to group."""
