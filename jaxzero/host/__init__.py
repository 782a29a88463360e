"""The host's side: files, signals, streams, caches and status lines on the terminal."""
