"""The tree search: rounds of simulations over the games of a batch."""
