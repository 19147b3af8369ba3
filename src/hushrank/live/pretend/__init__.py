"""Clients of simulated people, for trying a federation."""
