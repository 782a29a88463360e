"""What exact values of moves look like, whoever computes them."""

ILLEGAL = -128  # stands for the value of a move that cannot be made; fits in int8
