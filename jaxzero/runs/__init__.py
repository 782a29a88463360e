"""What a run leaves on disk: its directory, checkpoints, weights, metrics and summary."""
