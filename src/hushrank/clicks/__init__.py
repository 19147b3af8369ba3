"""Simulated people: on which of the shown documents they click."""
