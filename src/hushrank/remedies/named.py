"""Remedies by name."""

from __future__ import annotations

from hushrank.keys import make_method
from hushrank.registry import register
from hushrank.remedies.control_variates import ControlVariates
from hushrank.remedies.data_sharing import DataSharing
from hushrank.remedies.interpolation import Interpolation
from hushrank.remedies.personal_layers import FedPer
from hushrank.remedies.prox import FedProx
from hushrank.remedies.remedy import Remedy
from hushrank.remedies.synthetic_sharing import SyntheticSharing
from hushrank.remedies.tastes import Tastes

NONE = "none"
REMEDIES: dict[str, type[Remedy]] = {
    NONE: Remedy,
    "fedprox": FedProx,
    "fedper": FedPer,
    "control-variates": ControlVariates,
    "interpolation": Interpolation,
    "tastes": Tastes,
    "data-sharing": DataSharing,
    "synthetic-sharing": SyntheticSharing,
}  # `register_remedy` adds to it


def find_remedy(name: str, **settings: object) -> Remedy:
    """The remedy of this name with these settings."""
    found: Remedy = make_method(REMEDIES, name, settings)
    return found


def register_remedy(name: str, remedy: type[Remedy]) -> None:
    """Offer a remedy as `remedy=name`."""
    if not (isinstance(remedy, type) and issubclass(remedy, Remedy)):
        raise TypeError(f"remedy={name} must be a class that inherits from hushrank.remedies.remedy.Remedy.")
    register(REMEDIES, name, remedy, key="remedy")
