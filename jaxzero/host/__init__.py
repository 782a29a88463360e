"""The host's side: files, signals, streams, caches and what stands on the terminal."""
