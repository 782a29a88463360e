"""Who chooses moves, behind one interface."""
