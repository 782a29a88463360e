"""Play games in the terminal and by protocols, and analyse and review them."""

LONGEST_CLOCK = 1e6  # seconds for all decisions of a game
