"""A server that lies in a secure sum, with up to a third of the clients on its side: one run, and what it got hold of.

The server reorders, replays and invents messages, tells clients different rosters, sharers and survivors, hands out
keys that it made itself, signs with every identity it owns, and restarts clients from older copies of their state.
Some of its lies follow a plan: a few clients are to be left alone in a sum, the others are called silent.
At the end `find_secrets` joins all shares that it saw, and `find_open_sums` removes every mask that it can compute.
"""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushrank.privacy.fixed_point import encode_values
from hushrank.privacy.identities import Enrolment, identity_key, sign
from hushrank.privacy.masks import commit, public_key
from hushrank.privacy.secure_client import (
    ClientState,
    _open_delivery,
    _secret,
    begin_client,
    find_partners,
    mask_values,
    reveal_shares,
    share_secrets,
    sign_survivors,
)
from hushrank.privacy.secure_messages import (
    SURVIVORS,
    UPLOAD,
    Advert,
    Confirmation,
    Delivery,
    MaskedValues,
    Revealed,
    Roster,
    SealedShares,
    SignedSurvivors,
    SumConfig,
    SumPhase,
    Survivors,
    apply_mask,
    describe_survivors,
    digest_of,
    own_mask,
    pair_masks,
    usual_threshold,
    view_of,
)
from hushrank.privacy.secure_state import STATE, keep_state, load_state
from hushrank.privacy.shamir import join_shares
from hushrank.types import Array

Step = Callable[..., tuple[ClientState, Any]]


@dataclass
class Device:
    """An honest client: its state, on a disk in some runs, and what the checks must know about its upload."""

    client_id: int
    enrolment: Enrolment
    entropy: bytes
    values: Array
    folder: Path | None = None
    state: ClientState | None = None
    older: list[bytes] = field(default_factory=list)  # copies of its state file
    roster: Roster | None = None
    upload: MaskedValues | None = None
    view: bytes = b""
    partners: tuple[Advert, ...] = ()

    def take(self, step: Step, *inputs: Any, **options: Any) -> Any:
        """One step; the new state is kept before the message is handed out, as a driver must."""
        state, message = step(*inputs, enrolment=self.enrolment, **options)
        if self.folder:
            keep_state(self.folder, state)
            self.older.append((self.folder / STATE).read_bytes())
        self.state = state
        return message


@dataclass
class Liar:
    """A client that the server runs: one on its side, or one with an honest client's id and keys of the server's."""

    state: ClientState
    advert: Advert
    enrolment: Enrolment


@dataclass
class Lies:
    """The server of one run: whom it has, and all that it heard."""

    config: SumConfig
    rng: random.Random
    rate: float  # of lies
    honest: dict[int, Device]
    bad: dict[int, Enrolment]
    liars: list[Liar] = field(default_factory=list)
    adverts: dict[int, Advert] = field(default_factory=dict)  # as honest clients wrote them
    sealed: dict[bytes, dict[int, dict[int, bytes]]] = field(default_factory=dict)  # {roster: {writer: {reader: ...}}}
    signatures: dict[tuple[int, bytes], bytes] = field(default_factory=dict)  # {(client, what it signed): signature}
    heard: list[Any] = field(default_factory=list)  # old signatures, to be replayed
    shares: dict[tuple[int, bytes, int], dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    # {(owner, roster, 0 for the seed or 1 for the key): {point: share}}
    plan: frozenset[int] = frozenset()  # honest clients that are to be alone in a sum; empty: no plan
    is_split: bool = False  # whether those are told of few sharers
    is_forging: bool = False  # whether those get a roster on which every other honest client has the server's keys
    earlier: dict[int, Advert] = field(default_factory=dict)  # of honest clients, in another session
    counts: Counter[str] = field(default_factory=Counter)

    def lies(self) -> bool:
        return self.rng.random() < self.rate

    def ask(self, device: Device, step: Step, *inputs: Any, **options: Any) -> Any:
        """The message of a step, or None where the client refuses."""
        try:
            message = device.take(step, *inputs, **options)
        except (ValueError, KeyError) as error:
            self.counts["refused"] += 1
            if isinstance(error, KeyError):
                self.counts["stumbled"] += 1
            return None
        self.counts["answered"] += 1
        return message


def make_lies(seed: int, folder: Path | None, *, is_large: bool = False) -> Lies:
    """A federation with its identities: 6 to 10 clients without a graph, or 60 with neighbours."""
    rng = random.Random(seed)
    n = 60 if is_large else rng.randint(6, 10)
    ids = rng.sample(range(1000), n)
    bad = set(rng.sample(ids, n // 3 - (rng.random() < 0.2)))
    threshold = usual_threshold(n)
    least = 8 if is_large else threshold - n // 3
    session = hashlib.sha256(b"fuzzed %d" % seed).digest()
    config = SumConfig(session, n, 2, 1.0, threshold, least, neighbours_from=20)
    secrets = {i: rng.randbytes(32) for i in ids}
    identities = {i: identity_key(secret) for i, secret in secrets.items()}
    numbers = np.random.default_rng(seed)
    honest = {
        i: Device(i, Enrolment(secrets[i], identities), rng.randbytes(32), numbers.uniform(-1, 1, 2))
        for i in sorted(set(ids) - bad)
    }
    if folder:
        for device in rng.sample(list(honest.values()), 2):
            device.folder = folder / str(device.client_id)
            device.folder.mkdir()
    is_planned = rng.random() < 0.5
    rate = rng.choice([0.0, 0.02, 0.1] if is_planned else [0.0, 0.05, 0.2, 0.5])
    lies = Lies(config, rng, rate, honest, {i: Enrolment(secrets[i], identities) for i in sorted(bad)})
    if is_planned:
        lies.plan = frozenset(rng.sample(sorted(honest), rng.randint(1, least - 1)))
        lies.is_split, lies.is_forging = rng.random() < 0.5, rng.random() < 0.2
    return lies


def run_lies(lies: Lies) -> None:
    """All phases; in each, clients come in any order, and are told lies or the truth."""
    for phase in (_advertise, _share, _mask, _sign, _reveal):
        phase(lies)
        _restart_some(lies)


def _in_any_order(lies: Lies, phase: SumPhase) -> list[Device]:
    ready = [device for device in lies.honest.values() if device.state and device.state.phase is phase]
    return lies.rng.sample(ready, len(ready))


def _restart_some(lies: Lies) -> None:
    """From the disk, or from an older copy, which must be refused, and then begin anew, which must be refused too."""
    for device in [device for device in lies.honest.values() if device.folder and device.state]:
        assert device.folder and device.state
        if len(device.older) > 1 and lies.lies():
            last, session = device.older[-1], device.state.config
            (device.folder / STATE).write_bytes(lies.rng.choice(device.older[:-1]))
            with suppress(ValueError):
                device.state = load_state(device.folder)
                lies.counts["older state accepted"] += 1
                continue
            with suppress(ValueError):
                device.take(begin_client, session, device.client_id, entropy=lies.rng.randbytes(32))
                lies.counts["begun twice"] += 1
                continue
            (device.folder / STATE).write_bytes(last)
        device.state = load_state(device.folder)


def _advertise(lies: Lies) -> None:
    for device in lies.honest.values():
        lies.adverts[device.client_id] = lies.ask(
            device, begin_client, lies.config, device.client_id, entropy=device.entropy
        )
        past = replace(lies.config, session=lies.config.session[::-1])
        lies.earlier[device.client_id] = begin_client(
            past, device.client_id, enrolment=device.enrolment, entropy=device.entropy
        )[1]
    own = [(i, enrolment) for i, enrolment in lies.bad.items() for _ in range(1 + lies.lies())]
    forger = lies.rng.choice(list(lies.bad.values()))
    own += [(i, forger) for i in lies.honest if lies.is_forging or lies.lies()]
    for i, enrolment in own:
        state, advert = begin_client(lies.config, i, enrolment=enrolment, entropy=lies.rng.randbytes(32))
        lies.liars.append(Liar(state, advert, enrolment))


def _some_roster(lies: Lies) -> Roster:
    """All honest clients and one advert of each on the server's side, or a lie about it."""
    listed = dict(lies.adverts)
    for liar in lies.rng.sample(lies.liars, len(lies.liars)):
        if liar.advert.client_id in lies.bad or lies.lies():
            listed[liar.advert.client_id] = liar.advert
    if lies.lies():
        for i in lies.rng.sample(sorted(listed), lies.rng.randint(1, 3)):
            del listed[i]
    if lies.lies():
        i = lies.rng.choice(sorted(lies.adverts))
        listed[i] = replace(lies.adverts[i], signature=lies.rng.choice(list(listed.values())).signature)
    if lies.lies():
        i = lies.rng.choice(sorted(lies.adverts))
        listed[i] = lies.earlier[i]
    return _list_adverts(listed)


def _forged_roster(lies: Lies) -> Roster:
    return _list_adverts(lies.adverts | {a.client_id: a for a in _own_adverts(lies) if a.client_id not in lies.plan})


def _own_adverts(lies: Lies) -> list[Advert]:
    return [liar.advert for liar in lies.liars]


def _list_adverts(listed: Mapping[int, Advert]) -> Roster:
    return Roster(tuple(listed[i] for i in sorted(listed)))


def _share(lies: Lies) -> None:
    rosters = [_some_roster(lies) for _ in range(1 + lies.lies() + lies.lies())]
    if lies.is_forging:
        rosters = [_forged_roster(lies), *rosters]
    for device in _in_any_order(lies, SumPhase.SHARE):
        is_target = lies.is_forging and device.client_id in lies.plan
        for roster in rosters if is_target else lies.rng.sample(rosters, len(rosters)):
            message = lies.ask(device, share_secrets, device.state, roster)
            if message:
                device.roster = roster
                _hear_shares(lies, digest_of(lies.config, roster), message)
                break
    for roster in rosters:
        for liar in lies.liars:
            if liar.advert in roster.adverts:
                with suppress(ValueError):
                    state, message = share_secrets(liar.state, roster, enrolment=liar.enrolment)
                    _hear_shares(lies, state.digest, message)
    _open_own_shares(lies, rosters)


def _hear_shares(lies: Lies, digest: bytes, message: SealedShares) -> None:
    lies.sealed.setdefault(digest, {})[message.client_id] = dict(message.sealed)


def _open_own_shares(lies: Lies, rosters: list[Roster]) -> None:
    """What was sealed for a client of the server's is open to it, both shares of it."""
    for roster in rosters:
        digest = digest_of(lies.config, roster)
        places = {a.client_id: place + 1 for place, a in enumerate(roster.adverts)}
        listed = {a.client_id: a for a in roster.adverts}
        for liar in [liar for liar in lies.liars if liar.advert in roster.adverts]:
            state = replace(liar.state, adverts=listed, digest=digest)
            for writer in lies.sealed.get(digest, {}):
                sealed = lies.sealed[digest][writer].get(state.client_id)
                if sealed is None or listed[writer] != lies.adverts.get(writer):
                    continue
                with suppress(ValueError):
                    pair = _open_delivery(state, Delivery((), ((writer, sealed),)))[writer]
                    for kind in (0, 1):
                        lies.shares[writer, digest, kind][places[state.client_id]] = pair[kind]


def _some_sharers(lies: Lies, digest: bytes, device: Device) -> set[int]:
    """All who shared under this roster; or, for those who are to be alone, as few others as they put up with."""
    sharers = set(lies.sealed[digest])
    if lies.is_split and device.client_id in lies.plan:
        others = sorted(sharers - lies.plan - set(lies.bad))
        few = sharers & (lies.plan | set(lies.bad))
        return few | set(others[: max(lies.config.least_roster - len(few), 0)])
    if lies.lies():
        sharers -= set(lies.rng.sample(sorted(sharers), min(lies.rng.randint(1, 2), len(sharers))))
    return sharers


def _some_delivery(lies: Lies, device: Device) -> Delivery:
    assert device.state
    digest = device.state.digest
    sharers, own = _some_sharers(lies, digest, device), device.client_id
    sealed = {w: lies.sealed[digest].get(w, {}).get(own) for w in sorted(sharers)}
    pairs = [(w, s) for w, s in sealed.items() if s is not None]
    if lies.lies() and pairs:
        pairs.pop(lies.rng.randrange(len(pairs)))
    if lies.lies() and len(pairs) > 1:
        pairs[0] = (pairs[0][0], pairs[1][1])
    return Delivery(tuple(sorted(sharers)), tuple(pairs))


def _mask(lies: Lies) -> None:
    for device in _in_any_order(lies, SumPhase.MASK):
        if device.client_id not in lies.plan and lies.rng.random() < 0.05:
            continue  # falls silent by itself
        assert device.state and device.roster
        before = device.state
        for _ in range(3):
            delivery = _some_delivery(lies, device)
            message = lies.ask(device, mask_values, device.state, delivery, device.values)
            if message:
                device.upload, device.view = message, view_of(before.digest, delivery.sharers)
                device.partners = tuple(before.adverts[i] for i in find_partners(before, delivery))
                lies.signatures[device.client_id, device.view] = message.signature
                lies.heard.append(message.signature)
                break


def _silence(lies: Lies, sharers: set[int], declared: Counter[int], own: int) -> set[int]:
    """Those that one client is told are silent: of the others, those whose keys need most shares more."""
    most = len(sharers) - lies.config.least_roster
    others = sorted(lies.honest.keys() & sharers - lies.plan)
    if lies.is_split:  # those alone were told of the first few
        others = others[: max(lies.config.least_roster - len(sharers & (lies.plan | lies.bad.keys())), 0)]
    wanted = sorted((i for i in others if i != own), key=lambda i: declared[i])
    return {i for i in wanted[:most] if declared[i] < lies.config.threshold - len(lies.bad)}


def _sign_for(lies: Lies, client_id: int, purpose: str, signed: bytes) -> bytes:
    """The signature of a client of the server's, or one that was heard, or one that is wrong."""
    if client_id in lies.bad:
        return sign(lies.bad[client_id].secret, purpose, signed)
    if (client_id, signed) in lies.signatures:
        return lies.signatures[client_id, signed]
    if lies.heard and lies.lies():
        return bytes(lies.rng.choice(lies.heard))
    return sign(lies.rng.choice(list(lies.bad.values())).secret, purpose, signed)


def _sign(lies: Lies) -> None:
    uploaded = {d.client_id for d in lies.honest.values() if d.upload}
    declared: Counter[int] = Counter()
    common: dict[bytes, set[int]] = {}
    for device in _in_any_order(lies, SumPhase.SIGN):
        assert device.state
        sharers = set(device.state.sharers)
        for _ in range(3):
            alive = common.setdefault(device.view, sharers & (uploaded | set(lies.bad)))
            if lies.plan and lies.rng.random() < 0.9:
                alive = sharers - _silence(lies, sharers, declared, device.client_id)
            elif lies.lies():
                alive = sharers - set(lies.rng.sample(sorted(sharers), lies.rng.randint(1, 2)))
            uploads = tuple((i, _sign_for(lies, i, UPLOAD, device.view)) for i in sorted(alive))
            message = lies.ask(device, sign_survivors, device.state, Survivors(tuple(sorted(alive)), uploads))
            if message:
                declared.update(sharers - alive)
                _hear_signature(lies, device, message)
                break


def _hear_signature(lies: Lies, device: Device, message: SignedSurvivors) -> None:
    assert device.state
    lies.signatures[device.client_id, describe_survivors(device.view, device.state.survivors)] = message.signature
    lies.heard.append(message.signature)


def _reveal(lies: Lies) -> None:
    for device in _in_any_order(lies, SumPhase.REVEAL):
        assert device.state and device.roster
        before = device.state
        signed = describe_survivors(device.view, before.survivors)
        said = [(i, _sign_for(lies, i, SURVIVORS, signed)) for i in before.survivors]
        right = [(i, s) for i, s in said if i in lies.bad or (i, signed) in lies.signatures]
        tries = [right[: lies.config.threshold], said, [*right, *right], right[:-1]]
        for signatures in lies.rng.sample(tries, 4):
            message = lies.ask(device, reveal_shares, before, Confirmation(tuple(signatures)))
            if message:
                _hear_revealed(lies, device.roster, before.digest, message)
                break
        if device.state.phase is SumPhase.DONE and lies.ask(device, reveal_shares, device.state, Confirmation(())):
            lies.counts["revealed twice"] += 1


def _hear_revealed(lies: Lies, roster: Roster, digest: bytes, message: Revealed) -> None:
    places = {a.client_id: place + 1 for place, a in enumerate(roster.adverts)}
    for kind, told in enumerate((message.mask_shares, message.key_shares)):
        for owner, share in told:
            lies.shares[owner, digest, kind][places[message.client_id]] = share


# What the server holds in the end.


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


def find_open_sums(lies: Lies, seeds: Mapping[int, bytes], keys: Mapping[int, bytes]) -> list[set[int]]:
    """Sets of honest clients whose sum the server can compute: all masks known, or cancelling within the set.

    A linear combination of uploads is free of unknown masks only if it is constant on clients that share one.
    """
    tied: dict[int, set[int]] = {}  # {client: those with whom it has a pair mask that the server does not know}
    for device in [d for d in lies.honest.values() if d.upload]:
        unknown = [a for a in device.partners if a == lies.adverts.get(a.client_id) and a.client_id not in keys]
        tied[device.client_id] = set() if device.client_id in keys else {a.client_id for a in unknown}
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


def open_sum(lies: Lies, group: set[int], seeds: Mapping[int, bytes], keys: Mapping[int, bytes]) -> bool:
    """Remove the masks for real; whether what is left is the sum of the group's values."""
    own = {liar.advert.mask_key: _secret(liar.state, "mask key") for liar in lies.liars}
    own |= {lies.adverts[i].mask_key: secret for i, secret in keys.items()}
    total, plain = np.zeros(lies.config.n_entries, np.uint32), np.zeros(lies.config.n_entries, np.uint32)
    for i in group:
        device = lies.honest[i]
        assert device.upload
        total = total + device.upload.words - own_mask(seeds[i], device.view, lies.config.n_entries)
        plain = plain + encode_values(device.values, lies.config.encoding)
        for partner in device.partners:
            if partner.mask_key in own:
                (mask,) = pair_masks(own[partner.mask_key], [lies.adverts[i]], device.view, lies.config.n_entries)
                total = apply_mask(total, mask, is_added=i > partner.client_id)
            elif i in keys:
                (mask,) = pair_masks(keys[i], [partner], device.view, lies.config.n_entries)
                total = apply_mask(total, mask, is_added=i > partner.client_id)
    return bool(np.array_equal(total, plain))


def judge(lies: Lies) -> Counter[str]:
    """What was broken, and how often something came out as it should."""
    seeds, keys = find_secrets(lies)
    found = Counter(lies.counts)
    found["both secrets"] += len(seeds.keys() & keys.keys())
    for group in find_open_sums(lies, seeds, keys):
        if not open_sum(lies, group, seeds, keys):
            found["sum thought open, but is not"] += 1
        found["sums"] += 1
        found["sums too small"] += len(group) < lies.config.least_honest
    return found


def fuzz(seed: int, *, is_large: bool = False) -> Counter[str]:
    """One run, judged."""
    with tempfile.TemporaryDirectory() as place:
        lies = make_lies(seed, Path(place) if seed % 4 == 0 else None, is_large=is_large)
        run_lies(lies)
        return judge(lies)
