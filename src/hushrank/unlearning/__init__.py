"""Forgetting a client: what is kept for it, and a signed record that it was done."""
