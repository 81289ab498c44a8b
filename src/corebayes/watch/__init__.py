"""What a person sees of a run, and how it is interrupted: bars, steps, log lines, Ctrl-C."""
