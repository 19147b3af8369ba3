"""Queries and who asks them: what a search engine sees of a user, what that is worth, and what a device does itself."""
