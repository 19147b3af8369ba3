"""The federation over a network."""
