"""A server that lies in a secure sum, with up to a third of the clients on its side: one run, and what it got hold of.

The server reorders, replays and invents messages, tells clients different rosters, sharers and survivors, hands out
keys that it made itself or altered copies of honest clients' keys, signs with every identity it owns, and restarts
clients from older copies of their state. Some of its lies follow a plan: a few clients are to be left alone in a sum,
the others are called silent, or those on the server's side answer with copied keys so that masks cancel.
What it holds in the end is judged in `opened_sums.py`.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushrank.privacy.identities import Enrolment, identity_key, sign
from hushrank.privacy.masks import seal
from hushrank.privacy.secure_client import (
    ClientState,
    _open_delivery,
    _sealing_keys,
    begin_client,
    find_partners,
    mask_values,
    reveal_shares,
    share_secrets,
    sign_survivors,
)
from hushrank.privacy.secure_messages import (
    ADVERT,
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
    describe_advert,
    describe_survivors,
    digest_of,
    usual_threshold,
    view_of,
)
from hushrank.privacy.secure_state import STATE, keep_state, load_state
from hushrank.privacy.shamir import SHARE_BYTES
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
    copied: int | None = None  # the honest client whose mask key it advertises, altered


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
    copies: dict[int, int] = field(default_factory=dict)  # {client of the server's: the honest one whose key it copies}
    victim: int = -1  # of the copies
    is_sound_copy: bool = True  # whether the copies look like any key
    is_altering: bool = False  # whether some of the server's clients have keys that are none, or copied at random
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
    elif rng.random() < 0.3:
        _plan_copies(lies)
    lies.is_altering = rng.random() < 0.2
    return lies


def _plan_copies(lies: Lies) -> None:
    """Whose keys to copy so that the victim adds the mask of the copy and subtracts that of the owner."""
    honest = sorted(lies.honest)
    lies.victim = honest[len(honest) // 2]  # Why: half of the others are on either side
    lies.is_sound_copy = lies.rng.random() < 0.8
    owners = lies.rng.sample([i for i in honest if i != lies.victim], len(honest) - 1)
    for i in lies.bad:
        across = [owner for owner in owners if (owner < lies.victim) != (i < lies.victim)] or owners
        lies.copies[i] = across[0]
        owners.remove(across[0])


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
        lies.liars.append(_alter_keys(lies, Liar(state, advert, enrolment)))


def _alter_keys(lies: Lies, liar: Liar) -> Liar:
    """The same, or with an altered copy of an honest client's key, or with a key that is none."""
    own, some = liar.advert.client_id, lies.rng.choice(sorted(lies.honest))
    copied = lies.copies.get(own, some if lies.is_altering and own in lies.bad and lies.lies() else None)
    if copied is not None:
        alter = add_order_2 if own in lies.copies and lies.is_sound_copy else lies.rng.choice(ALTERED)
        advert = replace(liar.advert, mask_key=alter(lies.adverts[copied].mask_key))
    elif lies.is_altering and lies.lies():
        no_key = lies.rng.choice(NO_KEYS)
        advert = replace(liar.advert, mask_key=no_key) if lies.lies() else replace(liar.advert, sealing_key=no_key)
    else:
        return liar
    signature = sign(liar.enrolment.secret, ADVERT, describe_advert(lies.config, advert))
    return replace(liar, advert=replace(advert, signature=signature), copied=copied)


def flip_top_bit(public: bytes) -> bytes:
    """The same key to X25519, which ignores the bit."""
    return public[:-1] + bytes([public[-1] ^ 0x80])


def add_order_2(public: bytes) -> bytes:
    """The sum of a public key and the point of order 2, whose coordinate is 1 / u: the same secrets are agreed with it.

    Why: X25519 multiplies by multiples of 8, to which a point of order 2 adds nothing.
    """
    prime = 2**255 - 19
    return pow(int.from_bytes(public, "little"), -1, prime).to_bytes(32, "little")


def alter_both(public: bytes) -> bytes:
    return flip_top_bit(add_order_2(public))


ALTERED = (flip_top_bit, add_order_2, alter_both)
NO_KEYS = (bytes(32), (1).to_bytes(32, "little"), (2**255 - 20).to_bytes(32, "little"), b"\xff" * 32)


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
                _share_nothing(lies, liar, roster)
    _open_own_shares(lies, rosters)


def _share_nothing(lies: Lies, liar: Liar, roster: Roster) -> None:
    """A client of the server's seals zeros for its readers: nobody will miss its secrets."""
    listed = {a.client_id: a for a in roster.adverts}
    state = replace(liar.state, adverts=listed, digest=digest_of(lies.config, roster))
    others = sorted(listed.keys() - {state.client_id})
    readers = lies.rng.sample(others, min(lies.config.sharing(len(listed)).degree, len(others)))
    with suppress(ValueError):  # a reader whose key is none
        keys = _sealing_keys(state, [listed[i] for i in readers], is_writer=True)
        sealed = tuple((i, seal(key, bytes(2 * SHARE_BYTES))) for i, key in zip(readers, keys, strict=True))
        _hear_shares(lies, state.digest, SealedShares(state.client_id, sealed))


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


def _silence_uncopied(lies: Lies, sharers: set[int], uploaded: set[int]) -> set[int]:
    """The same whoever is told: as many as may be silent of those whose keys nobody copies, but for the victim."""
    others = lies.honest.keys() & sharers - {*lies.copies.values(), lies.victim}
    ranked = sorted(others, key=lambda i: (i in uploaded, i))
    return set(ranked[: max(len(sharers) - lies.config.least_roster, 0)])


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
            elif lies.copies:
                alive = sharers - _silence_uncopied(lies, sharers, uploaded)
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
