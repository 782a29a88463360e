"""Games in the terminal: a person against a player, or two players against each other."""
