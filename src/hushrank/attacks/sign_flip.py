"""Malicious clients that send the opposite of what they learnt."""

from __future__ import annotations

import numpy as np

from hushrank.types import Array


def sign_flip(updates: Array, is_malicious: Array, params: Array, *, key: Array) -> Array:
    """[n_clients, n_params]"""
    del params, key
    return np.where(is_malicious[:, None], -updates, updates)
