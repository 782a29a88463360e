"""Experiments: networks trained on exact labels within a budget, and runs compared with runs.

They help to choose a network. The agent itself learns from self-play alone.
"""
