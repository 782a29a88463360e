"""How strong a network is: matches, ratings, suites of solved positions."""
