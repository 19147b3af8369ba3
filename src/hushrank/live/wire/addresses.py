"""Addresses: which of them only this machine has, and which belong to one network."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network, ip_address

_OF_ONE = 64  # Why: so many leading bits of an IPv6 address are one customer's, who has all the others to choose from
_OF_A_SITE = 48  # Why: so many are one organisation's at most, which may have a network for each of its places


def is_address(said: str) -> bool:
    try:
        ip_address(said)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def plain_address(address: str) -> str:
    """The same for all ways to write one address; what is none stays as it is."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def network_of(address: str) -> str:
    """What counts as one address: itself, or the first half of an IPv6 address."""
    if ":" not in address:
        return address
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed) if parsed.is_loopback else str(IPv6Network((parsed, _OF_ONE), strict=False))


def networks_of(address: str) -> tuple[str, ...]:
    """What counts as one address; of an IPv6 address beyond this machine, the whole site's network, too."""
    network = network_of(address)
    if not network.endswith(f"/{_OF_ONE}"):
        return (network,)
    return network, str(IPv6Network(network).supernet(new_prefix=_OF_A_SITE))
