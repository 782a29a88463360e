"""Exact values and moves by the endgame solver, and the alpha-beta player. Runs on the host."""
