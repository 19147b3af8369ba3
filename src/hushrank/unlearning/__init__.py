"""Forgetting a client: what is kept for it, how training is repeated without it, and a signed record of that."""
