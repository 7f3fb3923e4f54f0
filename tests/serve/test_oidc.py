"""Bearer tokens, checked against a real provider's keys over real HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from litestar.testing import TestClient

from headwater.errors import ConfigError, TransportError
from headwater.serve import Serving, create_app
from headwater.serve.oidc import BadToken, Oidc, Verifier, fetch_json
from headwater.store import open_store

AUDIENCE = "headwater"


class Provider:
    """An identity provider: a description, a set of keys, and tokens signed with them."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.asked: list[str] = []
        self.down = False
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked.append(self.path)
                known = {"/.well-known/openid-configuration": provider.description, "/keys": provider.key_set}
                found = known.get(self.path)
                self.send_response(503 if provider.down else 200 if found else 404)
                self.end_headers()
                if found and not provider.down:
                    self.wfile.write(json.dumps(found()).encode())

            def log_message(self, *_: Any) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.add("first")

    def add(self, kid: str, key: Any = None) -> None:
        self.keys[kid] = key or rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def description(self) -> dict[str, str]:
        return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}

    def key_set(self) -> dict[str, Any]:
        made = []
        for kid, key in self.keys.items():
            algorithm = (
                jwt.algorithms.ECAlgorithm
                if isinstance(key, ec.EllipticCurvePrivateKey)
                else jwt.algorithms.RSAAlgorithm
            )
            made.append({**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"})
        return {"keys": made}

    def claims(self, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        return {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "fred",
            "iat": now,
            "exp": now + 300,
            "scope": "headwater:read",
            **more,
        }

    def token(self, kid: str = "first", algorithm: str = "RS256", key: Any = None, **claims: Any) -> str:
        given = {name: value for name, value in self.claims(**claims).items() if value is not None}
        return jwt.encode(given, key or self.keys[kid], algorithm, headers={"kid": kid})

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.close()


@pytest.fixture
def oidc(provider: Provider) -> Oidc:
    return Oidc(issuer=provider.issuer, audience=AUDIENCE)


def test_a_token_is_believed_by_its_signature_and_claims(provider: Provider, oidc: Oidc) -> None:
    verifier = Verifier(oidc)
    found = verifier.verify(provider.token(scope="openid headwater:ingest headwater:read other"))
    assert (found.subject, found.scopes) == ("fred", ("ingest", "read"))
    provider.add("curve", ec.generate_private_key(ec.SECP256R1()))
    assert Verifier(oidc).verify(provider.token("curve", "ES256")).subject == "fred"


def test_what_is_not_believed(provider: Provider, oidc: Oidc) -> None:
    verifier = Verifier(oidc)
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = (
        provider.keys["first"]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    head, _, signature = provider.token().split(".")
    other_body = provider.token(sub="root").split(".")[1]

    def confused(algorithm: str) -> str:
        """The public key taken for the secret of an HMAC, as libraries once did; made by hand, because jwt refuses to."""
        import base64
        import hmac

        def part(value: Any) -> str:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

        text = f"{part({'alg': algorithm, 'kid': 'first', 'typ': 'JWT'})}.{part(provider.claims())}"
        sign = hmac.new(public, text.encode(), "sha256").digest() if algorithm != "none" else b""
        return f"{text}.{base64.urlsafe_b64encode(sign).rstrip(b'=').decode()}"

    for name, token in {
        "another's key": provider.token(key=stranger),
        "an unknown key": provider.token("unheard-of", key=stranger),
        "no signature": confused("none"),
        "None": confused("None"),
        "the public key as a secret": confused("HS256"),
        "an algorithm that is not pinned": provider.token(algorithm="RS512"),
        "expired": provider.token(exp=int(time.time()) - 3600),
        "not yet": provider.token(nbf=int(time.time()) + 3600),
        "no end": provider.token(exp=None),
        "another audience": provider.token(aud="someone else"),
        "no audience": provider.token(aud=None),
        "another issuer": provider.token(iss="https://evil.example.org"),
        "no issuer": provider.token(iss=None),
        "no subject": provider.token(sub=None),
        "a changed body": f"{head}.{other_body}.{signature}",
        "no JWT": "abc",
        "empty parts": "..",
    }.items():
        with pytest.raises(BadToken) as caught:
            verifier.verify(token)
        assert token not in str(caught.value), name
    assert verifier.verify(provider.token()).subject == "fred"


def test_keys_are_turned_over_without_a_restart_or_a_flood(provider: Provider, oidc: Oidc) -> None:
    clock = [0.0]
    verifier = Verifier(oidc, clock=lambda: clock[0])
    verifier.verify(provider.token())
    asked = len(provider.asked)
    for _ in range(50):
        with pytest.raises(BadToken):
            verifier.verify(provider.token("unheard-of", key=provider.keys["first"]))
    assert len(provider.asked) == asked  # asked just now: strange tokens make us ask no sooner
    clock[0] += 10
    provider.add("second")
    del provider.keys["first"]
    assert verifier.verify(provider.token("second")).subject == "fred"
    assert len(provider.asked) == asked + 2
    clock[0] += 700  # the known keys are old, and the provider is away
    provider.down = True
    asked = len(provider.asked)
    for _ in range(20):
        assert verifier.verify(provider.token("second")).subject == "fred"
    assert len(provider.asked) == asked + 1
    provider.down = False
    provider.keys = {}
    provider.add("third")
    clock[0] += 1000
    withdrawn = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with pytest.raises(BadToken, match="does not publish"):
        verifier.verify(provider.token("second", key=withdrawn))


def test_a_provider_that_never_answered_is_told_as_such(provider: Provider, oidc: Oidc) -> None:
    provider.down = True
    with pytest.raises(TransportError, match="cannot be read"):
        Verifier(oidc).verify(provider.token())
    provider.down = False
    wrong = Oidc(issuer=f"{provider.issuer}/", audience=AUDIENCE)  # describes itself by another name
    with pytest.raises(TransportError):
        Verifier(wrong, fetch=fetch_json).verify(provider.token())


def test_while_no_key_is_known_a_token_is_neither_believed_nor_refused(
    provider: Provider, oidc: Oidc
) -> None:
    clock = [0.0]
    verifier = Verifier(oidc, clock=lambda: clock[0])
    provider.down = True
    for _ in range(5):  # the provider is asked once, and then not for a while
        with pytest.raises(TransportError, match="cannot be read"):
            verifier.verify(provider.token())
    assert len(provider.asked) == 1
    provider.down = False
    clock[0] += 3
    assert verifier.verify(provider.token()).subject == "fred"


def test_a_provider_that_hangs_holds_up_nobody_whose_key_is_known(provider: Provider, oidc: Oidc) -> None:
    clock, asked, go_on = [0.0], threading.Semaphore(0), threading.Event()
    hanging: list[str] = []

    def fetch(url: str) -> Any:
        if not hanging:
            return fetch_json(url)
        hanging.append(url)
        asked.release()
        go_on.wait(30)
        clock[0] += 10  # as long as it hung
        raise TransportError("it hangs", retryable=True)

    verifier = Verifier(oidc, fetch=fetch, clock=lambda: clock[0])
    verifier.verify(provider.token())
    hanging.append("from now on")
    clock[0] += 700
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(verifier.verify, provider.token())
        assert asked.acquire(timeout=30)
        assert pool.submit(verifier.verify, provider.token()).result(5).subject == "fred"
        strange = pool.submit(verifier.verify, provider.token("unheard-of", key=provider.keys["first"]))
        with pytest.raises(TransportError):
            strange.result(10)
        go_on.set()
        assert first.result(30).subject == "fred"
    for _ in range(5):
        assert verifier.verify(provider.token()).subject == "fred"
    assert len(hanging) == 2, "that it hung is known for a while"


def test_a_token_opens_what_its_claim_leads_to(provider: Provider) -> None:
    store = open_store("memory:")
    oidc = Oidc(
        issuer=provider.issuer,
        audience=AUDIENCE,
        claim="realm_access.roles",
        scopes={"lineage-admin": "admin", "lineage-reader": "read"},
    )

    def ask(path: str, **claims: Any) -> Any:
        return client.get(path, headers={"Authorization": f"Bearer {provider.token(**claims)}"})

    with TestClient(create_app(store, Serving(auth="on"), oidc=oidc)) as client:
        assert ask("/hw/v1/audit", realm_access={"roles": ["lineage-admin"]}).status_code == 200
        assert ask("/hw/v1/audit", realm_access={"roles": ["lineage-reader"]}).status_code == 403
        assert ask("/hw/v1/status", realm_access={"roles": ["lineage-reader"]}).status_code == 200
        assert ask("/hw/v1/status", realm_access={"roles": "lineage-adminx"}).status_code == 403
        assert ask("/hw/v1/status", realm_access=7).status_code == 403
        assert ask("/hw/v1/status", aud="x").status_code == 401
        told = ask("/hw/v1/server", realm_access={"roles": ["lineage-reader"]}).json()
        assert told["caller"] == {"name": "oidc:fred", "scopes": ["read"]}
    store.close()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"issuer": "https://x"}, "oidc.audience"),
        ({"audience": "x"}, "belong together"),
        ({"algorithms": ("HS256",)}, "HS256"),
        ({"algorithms": ("RS256", "none")}, "none"),
        ({"algorithms": ()}, "none at all"),
        ({"scopes": {"x": "root"}}, "root"),
        ({"scopes": {}}, "nothing"),
    ],
)
def test_bad_settings_are_refused_at_start(settings: dict[str, Any], words: str) -> None:
    given = (
        {"issuer": "https://x", "audience": "y", **settings}
        if "audience" not in settings and "issuer" not in settings
        else settings
    )
    with pytest.raises(ConfigError, match=words):
        Oidc(**given)
