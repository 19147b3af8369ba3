"""Scoring functions of one flat vector of parameters, and the lists drawn from their scores."""
