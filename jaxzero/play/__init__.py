"""Play games in the terminal and by protocols, and analyse and review them."""
