"""The wire as an OpenAPI 3.1 description, for people, for other programs, and for tests that try everything."""

from __future__ import annotations

from typing import Any

from hushrank import __version__
from hushrank.live.wire import protocol
from hushrank.live.wire.agreement import describe_agreement
from hushrank.live.wire.news import FORGET, FORGOTTEN, LAST, NEWS, ROUND, STANDING
from hushrank.live.wire.protocol import MOST_WAIT_S
from hushrank.live.wire.refusals import Reason

Json = dict[str, Any]
_INSTANCE: Json = {
    "type": "string",
    "pattern": "^[0-9a-f]{16}$",
    "description": "random, new at every start of a client: two processes with one credential are told apart by it",
}
_SECRET: Json = {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$", "minLength": 43, "maxLength": 43}
_PSEUDONYM: Json = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
_REASONS = [str(reason) for reason in Reason if reason is not Reason.unknown]
_BYTES: Json = {protocol.BODY_TYPE: {"schema": {"type": "string", "format": "binary"}}}


def describe_api() -> Json:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hushrank federation",
            "version": __version__,
            "description": f"Wire version {protocol.WIRE_VERSION}. A client is known by its credential alone.",
        },
        "paths": {
            protocol.FEDERATION: {"get": _open("What clients of this federation agree on", _agreed())},
            protocol.ENROL: {"post": _enrol()},
            protocol.ME: {"get": _for_clients("What the server knows of this client", _object(**STANDING))},
            protocol.ROUND: {"get": _round()},
            protocol.RANKER: {"get": _ranker()},
            protocol.UPDATE: {"put": _update()},
            protocol.LEAVE: {"post": _leave()},
            protocol.CANDIDATE: {"get": _candidate()},
            protocol.DECLINE: {"post": _decline()},
            protocol.FORGOTTEN: {"get": _forgotten()},
            protocol.HEALTH: {"get": _open("Whether the server works", _object(status={"const": "ok"}), "503")},
            protocol.METRICS: {"get": _metrics()},
            protocol.OPENAPI: {"get": _open("This description", {"type": "object"})},
        },
        "components": {
            "securitySchemes": {"credential": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Refusal": _object(
                    reason={"enum": _REASONS},
                    detail={"type": "string", "minLength": 1},
                )
            },
        },
    }


def _object(**properties: Any) -> Json:
    return {"type": "object", "required": list(properties), "properties": properties}


def _open(summary: str, schema: Json, *refusals: str) -> Json:
    return {"summary": summary, "responses": {"200": _json(schema), **_refusals("429", *refusals)}}


def _for_clients(summary: str, schema: Json, *refusals: str) -> Json:
    return {
        "summary": summary,
        "security": [{"credential": []}],
        "parameters": [
            _header(protocol.WIRE_HEADER, {"const": str(protocol.WIRE_VERSION)}),
            _header(protocol.RECEIPT_HEADER, {"type": "string"}, required=False),
        ],
        "responses": {"200": _json(schema), **_refusals("401", "426", "429", "503", *refusals)},
    }


def _json(schema: Json, description: str = "as asked") -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _refusals(*statuses: str) -> Json:
    schema = {"$ref": "#/components/schemas/Refusal"}
    return {status: _json(schema, "refused, with the reason") for status in sorted(statuses)}


def _header(name: str, schema: Json, *, required: bool = True) -> Json:
    return {"name": name, "in": "header", "required": required, "schema": schema}


def _path(name: str, schema: Json) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(name: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _agreed() -> Json:
    digest = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    return _object(agreement=describe_agreement(), digest=digest, wire={"const": protocol.WIRE_VERSION})


def _enrol() -> Json:
    answer, refusals = _object(accepted_updates={"type": "integer", "minimum": 0}), ("400", "403", "408", "411", "413")
    said = _for_clients("Join with a one-time token and a credential of one's own", answer, *refusals, "415")
    # Why no other key: any number of them would be right by this description, and too long for the server
    content = {"application/json": {"schema": {**_object(token=_SECRET), "additionalProperties": False}}}
    return {**said, "requestBody": {"required": True, "content": content}}


def _round() -> Json:
    news, finished = _object(**NEWS), _object(finished={"const": True}, last=LAST)
    news["properties"]["forget"] = FORGET
    said = _for_clients("The next round, as soon as it is open", {"anyOf": [news, finished]}, "400", "409")
    wait = {"type": "number", "minimum": 0, "maximum": MOST_WAIT_S}
    said["parameters"] += [_query("after", {**ROUND, "minimum": 0}), _query("wait", wait)]
    said["parameters"].append(_header(protocol.INSTANCE_HEADER, _INSTANCE, required=False))
    said["responses"]["204"] = {"description": "none within the wait"}
    return said


def _ranker() -> Json:
    said = _for_clients("The ranker of the open round as a safetensors file", {}, "400", "404")
    said["parameters"] += [_query("round", ROUND), _header("If-None-Match", {"type": "string"}, required=False)]
    said["responses"] |= {"200": {"description": "the ranker", "content": _BYTES}, "304": {"description": "unchanged"}}
    return said


def _leave() -> Json:
    answer = _object(left={"const": True})
    answer["properties"]["client"] = {**_PSEUDONYM, "description": "only of one who wants to be forgotten"}
    said = _for_clients(
        "Leave permanently; repeating the request is harmless", answer, "400", "408", "409", "413", "415"
    )
    content = {"application/json": {"schema": {**_object(forget={"const": True}), "additionalProperties": False}}}
    return {**said, "requestBody": {"required": False, "content": content}}


def _candidate() -> Json:
    said = _for_clients("What an open round that forgets starts from, as a safetensors file", {}, "400", "404")
    asked = {**_query("round", ROUND), "required": True}
    said["parameters"] += [asked, _header("If-None-Match", {"type": "string"}, required=False)]
    said["responses"] |= {"200": {"description": "the ranker", "content": _BYTES}, "304": {"description": "unchanged"}}
    return said


def _decline() -> Json:
    said = _for_clients("A client has nothing to replay", _object(declined={"const": True}), "400", "404")
    said["parameters"].append({**_query("round", ROUND), "required": True})
    return said


def _forgotten() -> Json:
    said = _open("What became of a client's wish to be forgotten", _object(**FORGOTTEN), "404", "503")
    return {**said, "parameters": [_path("client", _PSEUDONYM)]}


def _update() -> Json:
    answer = {**_object(accepted={"const": True}), "additionalProperties": {"const": True}}
    refusals = ["400", "403", "404", "408", "409", "410", "411", "413", "415", "422"]
    said = _for_clients("A client's update to a phase of a round, counted once", answer, *refusals)
    digest = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    said["parameters"] += [
        _path("round", ROUND),
        _path("phase", {"enum": list(protocol.PHASES)}),
        _header(protocol.AGREEMENT_HEADER, digest),
        _header(protocol.WEIGHT_HEADER, {"type": "integer", "minimum": 1}, required=False),
        _header(protocol.FILLED_HEADER, {"const": "1"}, required=False),
    ]
    return {**said, "requestBody": {"required": True, "content": _BYTES}}


def _metrics() -> Json:
    said = _open("Counts for the operator, in the format of Prometheus", {}, "401")
    said["security"] = [{"credential": []}]
    said["responses"]["200"] = {"description": "text", "content": {"text/plain": {"schema": {"type": "string"}}}}
    return said
