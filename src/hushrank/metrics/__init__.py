"""How good a ranking is: offline, online, and whether a difference between two is real."""
