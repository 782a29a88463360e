"""The game and the engine in the interfaces of other libraries; each file needs its library."""
