"""Exact play: the endgame solver, tables of whole boards, alpha-beta search. Runs on the host."""
