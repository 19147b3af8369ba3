"""How a click moves the parameters of a ranker."""
