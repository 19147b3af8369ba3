"""Recipes carried out: directories that can be resumed, results, sweeps."""
