"""Measure the strength of a network: matches and suites of solved positions."""
