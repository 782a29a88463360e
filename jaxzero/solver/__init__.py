"""Exact values and moves of positions. Runs on the host."""
