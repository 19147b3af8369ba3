"""What a lying server holds at the end of a run: secrets, and sums that it can compute.

`find_secrets` joins all shares that it saw. `find_open_sums` says which sums follow from what it knows. `find_opened`
does not trust that reasoning: it removes all masks that the server can compute from the uploads, and looks whether
sums and differences of what is left are those of the clients' values.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.lying_server import Device, Lies, make_lies, run_lies
from hushrank.privacy.fixed_point import encode_values
from hushrank.privacy.masks import commit, public_key
from hushrank.privacy.secure_client import _secret
from hushrank.privacy.secure_messages import Roster, apply_mask, digest_of, own_mask, pair_masks
from hushrank.privacy.shamir import join_shares
from hushrank.types import Array


def find_secrets(lies: Lies) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """{honest client: its seed} and {honest client: its mask key's secret}, of all shares that the server saw."""
    found: tuple[dict[int, bytes], dict[int, bytes]] = ({}, {})
    for (owner, digest, kind), shares in lies.shares.items():
        if owner not in lies.honest:
            continue
        size = next(len(d.roster.adverts) for d in lies.honest.values() if d.roster and _is(lies, d.roster, digest))
        with suppress(ValueError):
            secret = join_shares(shares, threshold=lies.config.sharing(size).threshold)
            advert = lies.adverts[owner]
            if commit(secret) == advert.commitment if kind == 0 else public_key(secret) == advert.mask_key:
                found[kind][owner] = secret
    return found


def _is(lies: Lies, roster: Roster, digest: bytes) -> bool:
    return digest_of(lies.config, roster) == digest


def find_known_keys(lies: Lies, keys: Mapping[int, bytes]) -> dict[bytes, bytes]:
    """{public mask key: secret} that the server has: those that it made, those that it joined, and copies of these."""
    made = {a.advert.mask_key: _secret(a.state, "mask key") for a in lies.liars if a.copied is None}
    copied = {a.advert.mask_key: keys[a.copied] for a in lies.liars if a.copied is not None and a.copied in keys}
    return made | copied | {lies.adverts[i].mask_key: secret for i, secret in keys.items()}


def find_open_sums(lies: Lies, seeds: Mapping[int, bytes], keys: Mapping[int, bytes]) -> list[set[int]]:
    """Sets of honest clients whose sum the server can compute: all masks known, or cancelling within the set.

    A linear combination of uploads is free of unknown masks only if it is constant on clients that share one.
    """
    known, tied = find_known_keys(lies, keys), dict[int, set[int]]()
    # tied: {client: those with whom it has a pair mask that the server does not know}
    for device in [d for d in lies.honest.values() if d.upload]:
        unknown = [] if device.client_id in keys else [a for a in device.partners if a.mask_key not in known]
        tied[device.client_id] = {a.client_id if a == lies.adverts.get(a.client_id) else -1 for a in unknown}
    hidden = {i for i in tied if i not in seeds or any(not _cancels(lies, tied, i, j) for j in tied[i])}
    while more := {i for i in tied if i not in hidden and tied[i] & hidden}:
        hidden |= more
    sums: list[set[int]] = []
    for i in [i for i in tied if i not in hidden]:
        together = {i} | tied[i]
        apart = [each for each in sums if not each & together]
        sums = [*apart, together.union(*(each for each in sums if each & together))]
    return sums


def _cancels(lies: Lies, tied: Mapping[int, set[int]], one: int, other: int) -> bool:
    return one in tied.get(other, ()) and lies.honest[one].view == lies.honest[other].view


def remove_masks(lies: Lies, seeds: Mapping[int, bytes], keys: Mapping[int, bytes]) -> dict[int, Array]:
    """{client whose own mask is known: [n_entries] uint32, what hides its values once all known masks are removed}"""
    known, left = find_known_keys(lies, keys), {}
    for device in [d for d in lies.honest.values() if d.upload and d.client_id in seeds]:
        left[device.client_id] = _remove_masks_of(lies, device, seeds[device.client_id], known)
    return left


def _remove_masks_of(lies: Lies, device: Device, seed: bytes, known: Mapping[bytes, bytes]) -> Array:
    assert device.upload
    i, n, own = device.client_id, lies.config.n_entries, lies.adverts[device.client_id]
    words = device.upload.words - own_mask(seed, device.view, n)
    for partner in device.partners:
        if partner.mask_key in known:
            (mask,) = pair_masks(known[partner.mask_key], partner, [own], device.view, n)
        elif own.mask_key in known:
            (mask,) = pair_masks(known[own.mask_key], own, [partner], device.view, n)
        else:
            continue
        words = apply_mask(words, mask, is_added=i > partner.client_id)
    return words - encode_values(device.values, lies.config.encoding)


def find_opened(left: Mapping[int, Array], least_honest: int) -> int:
    """How many sums and differences of uploads, other than sums over enough clients, are free of masks.

    Up to 8 clients: all combinations that add, subtract or leave out each. With more: single clients and pairs.
    """
    if not left:
        return 0
    combinations = list_combinations(len(left))  # [n_combinations, n_clients]
    hiding = combinations.astype(np.uint32) @ np.stack(list(left.values()))  # modulo 2^32
    is_enough = combinations.sum(axis=1) >= least_honest
    is_sum = combinations.min(axis=1) >= 0
    return int(np.count_nonzero(~hiding.any(axis=1) & ~(is_enough & is_sum)))


@lru_cache
def list_combinations(n: int) -> Array:
    """[n_combinations, n] of -1, 0 and 1, one of each two that are opposite."""
    if n <= 8:
        rows = itertools.product((-1, 0, 1), repeat=n)
        return np.array([row for row in rows if next((c for c in row if c), -1) > 0])
    one = np.eye(n, dtype=int)
    pairs = itertools.combinations(one, 2)
    return np.array([*one, *(a + sign * b for a, b in pairs for sign in (1, -1))])


def judge(lies: Lies) -> Counter[str]:
    """What was broken, and how often something came out as it should."""
    seeds, keys = find_secrets(lies)
    left, least = remove_masks(lies, seeds, keys), lies.config.honest_in_sum
    found = Counter(lies.counts)
    found["both secrets"] += len(seeds.keys() & keys.keys())
    found["opened by combining"] += find_opened(left, least)
    for group in find_open_sums(lies, seeds, keys):
        hiding = np.stack([left[i] for i in group]).sum(axis=0, dtype=np.uint32)
        found["sum thought open, but is not"] += bool(hiding.any())
        found["sums"] += 1
        found["sums too small"] += len(group) < least
    return found


def fuzz(seed: int, *, is_large: bool = False) -> Counter[str]:
    """One run, judged."""
    with tempfile.TemporaryDirectory() as place:
        lies = make_lies(seed, Path(place) if seed % 4 == 0 else None, is_large=is_large)
        run_lies(lies)
        return judge(lies)
