"""How the updates of a round become one, and the server's step with it."""
