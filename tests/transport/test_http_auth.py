"""Who we are and whom we trust: keys, tokens, certificates, and what of them is ever shown."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard
from lineage_server import Answer, Request, Server, running

from headwater.errors import ConfigError, TransportError
from headwater.transport.http import HttpTransport

EVENT = b'{"eventTime":"2026-01-01T00:00:00Z","job":{"namespace":"n","name":"1"}}'


def send(server: Server, *events: bytes, **options: Any) -> None:
    transport = HttpTransport(server.url, **options)
    try:
        transport.send(events or (EVENT,))
    finally:
        transport.close()


def test_a_key_is_sent_in_both_usual_ways(server: Server) -> None:
    send(server, api_key="k1")
    send(server, auth={"type": "api_key", "api_key": "k2\n"})  # as a file of it ends
    seen = [(r.headers["Authorization"], r.headers["X-API-Key"]) for r in server.requests]
    assert seen == [("Bearer k1", "k1"), ("Bearer k2", "k2")]


class TokenServer:
    """Gives a token a time; lineage is taken with the newest alone."""

    def __init__(self, server: Server, expires_in: int = 3600) -> None:
        self.given, self.refuse, self.expires_in = 0, False, expires_in
        server.rule = self.rule

    def rule(self, request: Request) -> Answer:
        if request.path == "/token":
            assert b"grant_type=client_credentials" in request.body
            assert b"client_secret=hush" in request.body
            if self.refuse:
                return Answer(401, {"error": "hush is wrong"})
            self.given += 1
            return Answer(200, {"access_token": f"token{self.given}", "expires_in": self.expires_in})
        good = request.headers.get("Authorization") == f"Bearer token{self.given}"
        return Answer(201 if good else 401)


def oauth(server: Server) -> dict[str, Any]:
    return {"type": "oauth", "token_url": f"{server.url}/token", "client_id": "me", "client_secret": "hush"}


def test_oauth_fetches_a_token_once_and_anew_when_it_is_refused(server: Server) -> None:
    tokens = TokenServer(server)
    transport = HttpTransport(server.url, auth=oauth(server))
    transport.send([EVENT])
    transport.send([EVENT])
    assert tokens.given == 1
    tokens.given = 7  # withdrawn: another is the newest
    transport.send([EVENT])
    transport.close()
    assert tokens.given == 8


def test_oauth_renews_before_the_end(server: Server) -> None:
    tokens = TokenServer(server, expires_in=1)
    transport = HttpTransport(server.url, auth=oauth(server))
    transport.send([EVENT])
    transport.send([EVENT])
    transport.close()
    assert tokens.given == 2


def test_oauth_that_is_refused_says_so_without_the_secret(server: Server) -> None:
    TokenServer(server).refuse = True
    with pytest.raises(TransportError, match="answered 401 instead of a token: check client_id") as caught:
        send(server, auth=oauth(server))
    assert not caught.value.retryable
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("token", [Answer(200, b"<html>"), Answer(200, {"error": "none"})])
def test_a_page_in_place_of_a_token_is_told(server: Server, token: Answer) -> None:
    server.always = token
    with pytest.raises(TransportError, match="answered 200 instead of a token"):
        send(server, auth=oauth(server))


def test_a_token_whose_end_cannot_be_read_is_used(server: Server) -> None:
    server.rule = lambda asked: (
        Answer(200, {"access_token": "t", "expires_in": "soon"}) if asked.path == "/token" else None
    )
    send(server, auth=oauth(server))
    assert server.requests[-1].headers["Authorization"] == "Bearer t"


def test_what_the_provider_of_a_token_raises_is_a_fault_of_the_transport(server: Server) -> None:
    with pytest.raises(TransportError, match="auth: gave no token: KeyError") as caught:
        send(server, auth={"type": "test_http_auth:broken"})
    assert caught.value.retryable
    assert server.requests == []


def broken() -> Callable[[], str]:
    def provide() -> str:
        raise KeyError("VAULT_TOKEN")

    return provide


class Provider:
    def __init__(self, prefix: str = "t") -> None:
        self.prefix, self.count = prefix, 0

    def get_bearer(self) -> str:
        self.count += 1
        return f"Bearer {self.prefix}{self.count}"


def test_a_token_provider_of_ones_own(server: Server) -> None:
    transport = HttpTransport(server.url, auth={"type": "test_http_auth:Provider", "prefix": "own"})
    transport.send([EVENT])
    transport.send([EVENT])
    server.always = Answer(400, {"detail": "bad own3"})
    with pytest.raises(TransportError) as caught:
        transport.send([EVENT])
    transport.close()
    assert [r.headers["Authorization"] for r in server.requests] == [
        "Bearer own1",
        "Bearer own2",
        "Bearer own3",
    ]
    assert "own3" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"auth": "key"}, "auth: must be a table"),
        ({"auth": {"type": "kerberos"}}, "auth.type: 'kerberos' is none of"),
        ({"auth": {"type": "oauth", "client_id": "x"}}, "missing a required argument"),
        ({"auth": {"type": "test_http_auth:Nobody"}}, "cannot be used"),
        ({"auth": {"type": "no_such_module:x"}}, "cannot be used"),
        ({"auth": {"type": "test_http_auth:Provider", "sufix": 1}}, "sufix"),
        ({"client_key": "k.pem"}, "client_key: needs client_cert"),
        ({"client_cert": "/no/such.pem"}, "client_cert: '/no/such.pem' cannot be used"),
        ({"params": "a=1"}, "params: must be a table"),
        ({"profile": "marquez"}, "profile: 'marquez' is not offered: openlineage, correlator, single"),
    ],
)
def test_what_cannot_be_used_is_told_at_set_up(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        HttpTransport("http://localhost", **options)


def test_parameters_go_with_each_request(server: Server) -> None:
    send(server, EVENT, EVENT, params={"team": "a b", "code": "x&y"})
    assert server.requests[0].path == "/api/v1/lineage/batch?team=a+b&code=x%26y"


def test_profiles(server: Server) -> None:
    send(server, EVENT, profile="correlator")
    send(server, EVENT, EVENT, profile="correlator")
    send(server, EVENT, EVENT, profile="single")
    assert [r.path for r in server.requests] == ["/api/v1/lineage/events"] * 2 + ["/api/v1/lineage"] * 2
    assert [isinstance(r.json, list) for r in server.requests] == [True, True, False, False]


def test_zstd_and_a_server_that_does_not_unpack(server: Server) -> None:
    seen: list[bytes] = []

    def rule(request: Request) -> Answer:
        if request.headers.get("Content-Encoding") == "zstd":
            seen.append(zstandard.ZstdDecompressor().decompress(request.body))
            return Answer(415)
        seen.append(request.body)
        return Answer(201)

    server.rule = rule
    transport = HttpTransport(server.url, compression="zstd")
    transport.send([EVENT])
    transport.send([EVENT])
    transport.close()
    assert seen == [EVENT, EVENT, EVENT]  # packed once, then plain


def test_our_own_server_unpacks_zstd(tmp_path: Path) -> None:
    from serving import serving

    with serving(f"sqlite:///{tmp_path}/x.db") as real:
        for packing in ("zstd", "gzip"):
            transport = HttpTransport(real.url, compression=packing)
            transport.send([EVENT, EVENT.replace(b'"1"', b'"2"')])
            transport.close()


@pytest.mark.parametrize("status", [404, 405, 501])
def test_the_drainer_is_told_which_may_be_sent_again(server: Server, status: int) -> None:
    """A server without arrays that fails in the middle: the first is taken, the others are not."""
    events = [EVENT.replace(b'"1"', b'"%d"' % n) for n in range(4)]

    def rule(request: Request) -> Answer:
        if request.path.endswith("batch"):
            return Answer(status)
        return Answer(
            {"0": 201, "1": 422}.get(request.json["job"]["name"], 503), headers={"Retry-After": "9"}
        )

    server.rule = rule
    with pytest.raises(TransportError) as caught:
        send(server, *events, retries=0)
    fault = caught.value
    assert (fault.retryable, fault.pending, list(fault.refused), fault.retry_after) == (
        True,
        {2, 3},
        [1],
        9.0,
    )


# --- certificates


@contextmanager
def mutual(folder: Path) -> Iterator[tuple[Server, dict[str, str]]]:
    openssl = shutil.which("openssl") or pytest.skip("needs the openssl command to make certificates")

    def run(*arguments: object) -> None:
        subprocess.run([openssl, *map(str, arguments)], check=True, capture_output=True, cwd=folder)

    new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    run(
        *new,
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        "s.key",
        "-out",
        "s.pem",
    )
    run(*new, "-subj", "/CN=client", "-keyout", "c.key", "-out", "c.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "s.pem", folder / "s.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / "c.pem")
    with contextmanager(running)(context) as server:
        yield server, {"client_cert": str(folder / "c.pem"), "client_key": str(folder / "c.key")}


def test_mutual_tls(tmp_path: Path) -> None:
    with mutual(tmp_path) as (server, ours):
        send(server, verify=str(tmp_path / "s.pem"), **ours)
        send(server, verify=False, **ours)
        assert len(server.requests) == 2
        with pytest.raises(TransportError, match="no answer"):
            send(server, verify=str(tmp_path / "s.pem"), retries=0)
        with pytest.raises(TransportError, match="no answer"):
            send(server, retries=0, **ours)  # its certificate is nobody's we know
