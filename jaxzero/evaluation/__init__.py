"""How strong a player is: matches, ratings, and scores on positions with exact values."""
