"""Personalised search trained across clients: logs, populations of users, and what turns a log into arrays."""
