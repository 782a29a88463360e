"""Exact play: the endgame solver, alpha-beta search. Runs on the host."""
