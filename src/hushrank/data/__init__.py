"""Data sets: read, generated, normalised, divided into folds. Plain NumPy throughout."""
