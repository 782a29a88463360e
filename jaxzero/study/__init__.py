"""A test bed for networks: what each learns from exact labels in the same time.

It helps to choose a network. What ships learns from self-play alone.
"""
