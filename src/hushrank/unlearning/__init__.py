"""What clients keep so that one of them can be forgotten, and how a training is repeated without it."""
