"""Measurements, run by hand: `make bench` for speed, `make experiments` for quality on real data."""
