"""Experiments as data: recipes and grids, checked and made ready for the simulator."""
