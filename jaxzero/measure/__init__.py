"""Measure the strength of a network: matches, ratings, suites of solved positions."""
