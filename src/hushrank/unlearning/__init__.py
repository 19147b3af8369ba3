"""Forgetting a client: what is kept for it, how a training is repeated without it, and a signed record that it was done."""
