"""Learners by name: each reads one interaction and says where the parameters should move."""

from __future__ import annotations

from hushrank.learners.pdgd import pdgd_gradient
from hushrank.types import Gradient

LEARNERS: dict[str, Gradient] = {"pdgd": pdgd_gradient}  # a plugin adds its own here
