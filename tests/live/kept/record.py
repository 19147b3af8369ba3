"""Writes the files beside it with the hushrank that is on the path: run it on a release, keep what it writes.

    PYTHONPATH=RELEASE/src:tests/live python tests/live/kept/record.py tests/live/kept/NAME

NAME/federation    a server's directory, stopped while round 4 is open and has one of two answers
NAME/people        the homes of its two clients
NAME/expected.json the ranker after all rounds, by the same hushrank; recorded anew when the law of the noise changed
NAME/*.transcript.json every request of a client of another federation, and its answers
"""

from __future__ import annotations

import http.client
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from live_processes import Server, finish, run, serving, settings, start_person
from scripted_server import Request, Response
from scripted_server import serving as scripted

SEED, N_FEATURES, N_PEOPLE = 7, 8, 2
AGREED = {"privacy": "sound", "noise_multiplier": 1.5, "clip_norm": 0.1, "n_clients": N_PEOPLE, "rounds": 6}
CHOSEN = {"server_optimiser": "adam", "min_clients": N_PEOPLE, "deadline_s": 3600, "asleep_after_s": 3600}
TRANSCRIPTS: dict[str, dict[str, float]] = {"fpdgd": {"rounds": 2}, "foltr-es": {"rounds": 2, "p": 0.9}}
KEPT = ("federation.sqlite", "server.toml", "keys", "tokens.txt", "client.sqlite", "ledger.jsonl")


def make_federation(directory: Path, *words: str, **chosen: object) -> None:
    seeded = ("--simulate", "--seed", str(SEED), "--features", str(N_FEATURES))
    run("server", "init", directory, *seeded, *words, *settings(**chosen))


def record_federation(place: Path, kept: Path) -> None:
    """Three rounds and a half, kept; then the rest, of which the ranker is kept."""
    make_federation(place / "federation", "--tokens", str(N_PEOPLE), **AGREED, **CHOSEN)
    with serving(place / "federation") as server:
        finish([start_person(server, place / "people", id, "--rounds", str(4 - id)) for id in range(N_PEOPLE)])
    for path in [path for path in place.rglob("*") if path.name in KEPT]:
        target = kept / path.relative_to(place)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    with serving(place / "federation") as server:
        finish([start_person(server, place / "people", id) for id in range(N_PEOPLE)])
        expected = {"rounds": AGREED["rounds"], "params": server.export().tolist()}
    (kept / "expected.json").write_text(json.dumps(expected) + "\n", encoding="utf-8")


def record_transcript(place: Path, method: str, path: Path) -> None:
    """What a client that is alone asks from joining to the end, and is answered."""
    make_federation(place / "federation", "--method", method, "--tokens", "1", **TRANSCRIPTS[method])
    exchanges: list[dict[str, Any]] = []

    def forward(request: Request) -> Response:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
        connection.request(request.method, request.path, request.body, request.headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        exchanges.append(write_exchange(request, answer.status, content))
        return Response(answer.status, content)

    with serving(place / "federation") as server, scripted(forward) as (url, _):
        finish([start_person(Server(server.directory, url, server.process), place / "people", 0)])
        for request in unusual_requests(exchanges):
            forward(request)
        run("client", "leave", "--home", place / "people" / "0")
    path.write_text(json.dumps(exchanges, indent=1) + "\n", encoding="utf-8")


def unusual_requests(exchanges: list[dict[str, Any]]) -> list[Request]:
    """The last update again, with another body, under another agreement, and to a round that never was."""
    sent = next(exchange for exchange in reversed(exchanges) if exchange["method"] == "PUT")
    path, body = sent["path"], bytes.fromhex(sent["body"])
    headers = {name: value for name, value in sent["headers"].items() if name != "Content-Length"}
    elsewhere = {**headers, "Hushrank-Agreement": "0" * 64}
    return [
        Request("PUT", path, headers, body),
        Request("PUT", path, headers, bytes(len(body))),
        Request("PUT", path, elsewhere, body),
        Request("PUT", "/v1/rounds/99/update", headers, body),
    ]


def write_exchange(request: Request, status: int, content: bytes) -> dict[str, Any]:
    """Bytes as hexadecimal digits, JSON as it is."""
    is_json = content.startswith(b"{")
    return {
        "method": request.method,
        "path": request.path,
        "headers": {name: value for name, value in request.headers.items() if name != "Host"},
        "body": request.body.hex(),
        "status": status,
        "answer": json.loads(content) if is_json else content.hex(),
    }


def main(kept: Path) -> None:
    kept.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        record_federation(Path(place) / "rounds", kept)
        for method in TRANSCRIPTS:
            record_transcript(Path(place) / method, method, kept / f"{method}.transcript.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
