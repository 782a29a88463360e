"""The files of a run: its directory, checkpoints, weights, metrics and summary."""
