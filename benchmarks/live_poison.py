"""One live poisoner at the norm bound among twenty honest clients: what each aggregation rule makes of it.

    python -m benchmarks.live_poison --data DIR/MQ2008 > docs/benchmarks/live_poison.json

A real server process on loopback, one process with twenty pretend people, and one process whose client lies: it sends
the opposite of all that it has learnt so far, or what it has learnt from clicks on what is not relevant, each time as
long as the server takes. Fifty rounds for each rule, and the same without the poisoner. Quality is test nDCG@10 of the
last ranker; `status` is what the operator sees then. Everything is seeded, so that all federations of a fold differ in
the rule and in the poisoner alone.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hushrank.aggregation.named import RULES, aggregation_names
from hushrank.aggregation.tolerance import assumes_malicious
from hushrank.data.load import load_dataset
from hushrank.files import Json
from hushrank.metrics.ndcg import mean_ndcg
from hushrank.rankers.named import read_ranker
from hushrank.types import Fold

HUSHRANK = [sys.executable, "-m", "hushrank"]
N_HONEST = 20
LIES = {  # {name: words of the poisoner's client}
    "none": None,
    "sign-flip": ("--attack", "sign-flip", "--at-bound", "--steady"),
    "poisoned-clicks": ("--attack", "poisoned-clicks", "--at-bound", "--steady"),
}
SHOWN = [name for name in ("mean", "median", "multi-krum", "detector", "watchful") if name in aggregation_names()]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mq2008-like")
    parser.add_argument("--clicks", default="navigational", help="how honest people click")
    parser.add_argument("--rules", nargs="+", default=SHOWN)
    parser.add_argument("--folds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--lies", nargs="+", default=list(LIES), choices=list(LIES))
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--beside", type=Path, help="a file of this benchmark whose other runs are kept")
    chosen = parser.parse_args(arguments)
    kept = json.loads(chosen.beside.read_text(encoding="utf-8"))["runs"] if chosen.beside else []
    rows = [row for row in kept if row["rule"] not in chosen.rules or row["lie"] not in chosen.lies]
    for fold in load_dataset(chosen.data, folds=chosen.folds).folds:
        for rule in chosen.rules:
            for lie in chosen.lies:
                row = {"fold": fold.number, "rule": rule, "lie": lie, **run(chosen, fold, rule, lie)}
                print(f"{row['fold']} {rule}, {lie}: {row['ndcg']:.4f} in {row['seconds']:.0f} s", file=sys.stderr)
                rows.append(row)
    about = {"data": Path(chosen.data).name.lower(), "clicks": chosen.clicks, "rounds": chosen.rounds}
    print(json.dumps({**about, "honest": N_HONEST, "means": average(rows), "runs": rows}, indent=2))
    return 0


def run(chosen: argparse.Namespace, fold: Fold, rule: str, lie: str) -> Json:
    """One federation from its first round to its last."""
    words, began = LIES[lie], time.monotonic()
    n_clients = N_HONEST + (words is not None)
    with tempfile.TemporaryDirectory() as place, serving(Path(place), fold, rule, n_clients, chosen.rounds) as url:
        crowd = ["client", url, "--simulate", chosen.data, "--fold", fold.number, "--tokens", f"{place}/f/tokens.txt"]
        # Why the liar's number is the highest: honest people draw the same in every federation
        honest = [*crowd, "--home", f"{place}/honest", "--clicks", chosen.clicks, "--users", N_HONEST]
        lying = [*crowd, "--home", f"{place}/liar", "--first", N_HONEST, "--clicks", chosen.clicks, *(words or ())]
        started = [start(each) for each in ([honest] if words is None else [honest, lying])]
        ended = [process.wait() for process in started]
        if any(ended):
            raise RuntimeError(f"the clients ended with {ended}")
        command("server", "export", f"{place}/f", f"{place}/ranker.safetensors")
        _, params, _ = read_ranker(Path(place) / "ranker.safetensors")
        status = json.loads(command("server", "status", f"{place}/f", "--json"))
        told = [line for line in command("server", "status", f"{place}/f").splitlines() if line[:4] in ("rule", "dist")]
        clients = read_clients(place)
        liar = find_liar(place, words)
    quality = mean_ndcg(fold.test, fold.test.features @ params.astype(np.float64)).value
    named = [each["client"] for each in status["distrusted"]]
    found = {"liar": liar, "distrusted": status["distrusted"], "named_alone": named == [liar], "status": told}
    found["gives_trust"] = any(each["trust"] is not None for each in clients)
    n_accepted = sum(each["accepted"] for each in clients)
    counted = {"rounds": status["rounds_closed"], "accepted": n_accepted, "refused": status["refused"]}
    return {"ndcg": quality, **counted, **found, "seconds": time.monotonic() - began}


def read_clients(place: str) -> list[Json]:
    found: list[Json] = json.loads(command("server", "clients", f"{place}/f", "--json"))["clients"]
    return found


def find_liar(place: str, words: tuple[str, ...] | None) -> int | None:
    """The liar's number in the server's file, by the credential that only its home has."""
    if words is None:
        return None
    from hushrank.live.device.store import STORE, Interactions
    from hushrank.live.server import store

    with Interactions(Path(place) / "liar" / str(N_HONEST) / STORE) as home:
        membership = home.membership()
    assert membership is not None
    with store.open_store(Path(place) / "f" / store.FILE, read_only=True).begin() as connection:
        members = store.read_members(connection)
    return next(each.id for each in members if each.credential_hash == store.hash_secret(membership.credential))


@contextmanager
def serving(place: Path, fold: Fold, rule: str, n_clients: int, rounds: int) -> Iterator[str]:
    """The address of a new federation's server while this lasts."""
    agreed = [f"rounds={rounds}", f"min_clients={n_clients}", "least_deadline_s=60", f"aggregation={rule}"]
    agreed += ["assumed_malicious=1"] if assumes_malicious(RULES.get(rule)) else []
    seeded = ("--simulate", "--seed", "1", "--features", fold.train.n_features, "--tokens", n_clients)
    command("server", "init", place / "f", *seeded, *(word for each in agreed for word in ("--set", each)))
    with (place / "log").open("w") as log:
        process = subprocess.Popen([*HUSHRANK, "server", str(place / "f"), "--port", "0"], stderr=log)
    try:
        while not (found := re.search(r"listening on (\S+)", (place / "log").read_text())):
            if process.poll() is not None:
                raise RuntimeError((place / "log").read_text())
            time.sleep(0.05)
        yield found[1]
    finally:
        process.terminate()
        process.wait()


def command(*words: object) -> str:
    """What a command prints."""
    return subprocess.run([*HUSHRANK, *map(str, words)], capture_output=True, text=True, check=True).stdout


def start(words: list[object]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*HUSHRANK, *map(str, words)], stderr=subprocess.DEVNULL)


def average(rows: list[Json]) -> list[Json]:
    """Over folds: quality, what the poisoner cost against the mean in peace, and how often it alone was named."""
    means = []
    for rule, lie in dict.fromkeys((row["rule"], row["lie"]) for row in rows):
        same = [row for row in rows if (row["rule"], row["lie"]) == (rule, lie)]
        peace = {row["fold"]: row["ndcg"] for row in rows if row["lie"] == "none" and row["rule"] == "mean"}
        falls = [peace[row["fold"]] - row["ndcg"] for row in same if row["fold"] in peace]
        ndcg, fall = float(np.mean([row["ndcg"] for row in same])), float(np.mean(falls)) if falls else None
        named = sum(row["named_alone"] for row in same) if lie != "none" else None
        accused = sum(len(row["distrusted"]) for row in same) if lie == "none" else None
        found = {"ndcg": ndcg, "fall": fall, "n": len(same), "named_alone": named, "accused": accused}
        means.append({"rule": rule, "lie": lie, **found})
    return means


if __name__ == "__main__":
    sys.exit(main())
