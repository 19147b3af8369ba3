"""Clients that differ: how documents, labels, people and searches are divided among them, how far apart they are."""
