"""Games in the terminal: a person against a player, or two players against each other."""

LONGEST_CLOCK = 1e6  # seconds for all decisions of a game
