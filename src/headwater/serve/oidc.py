"""serve.oidc: a bearer token of an identity provider -> who sends it and what he may do, by the provider's published keys.

Only algorithms with a public and a private half are read, and those are pinned: a token cannot choose `none`, nor
have the public key taken for the secret of an HMAC. Keys are fetched when a token names one that is not known, but
not more often than the provider would bear; while it is away, those that are known go on serving.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.errors import ConfigError, NotInstalled, TransportError
from headwater.keys import SCOPES

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_FRESH_SECONDS = 600
_MAX_BACK_OFF = 300
_PATIENCE = 1.0
"""How many seconds a token whose key is unknown waits while another asks for keys: each that waits holds a thread."""


@dataclass(frozen=True, slots=True)
class Oidc:
    """The settings of room `oidc`."""

    issuer: str = ""
    """The provider, as its tokens name it: `https://login.example.org/realms/data`."""
    audience: str = ""
    """What tokens for this server are made out to."""
    jwks_url: str = ""
    """Where its keys are; found by the provider's own description where it is not given."""
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    claim: str = "scope"
    """The claim that says what a caller may do; dots lead into objects: `realm_access.roles`."""
    scopes: dict[str, str] = field(default_factory=lambda: {f"headwater:{scope}": scope for scope in SCOPES})
    """What the claim says -> one of our scopes."""
    subject: str = "sub"
    """The claim that names the caller in the audit trail."""
    leeway: float = 30
    """Seconds by which clocks may differ."""

    def __post_init__(self) -> None:
        if not self.issuer and not self.audience:
            return
        if not self.issuer.startswith(("https://", "http://")) or not self.audience:
            raise ConfigError("oidc.issuer (a url) and oidc.audience belong together: give both or neither")
        if bad := set(self.algorithms) - set(ALGORITHMS) or not self.algorithms:
            told = ", ".join(sorted(bad)) if isinstance(bad, set) else "none at all"
            raise ConfigError(
                f"oidc.algorithms: {told}: only those with a public key can be used: {', '.join(ALGORITHMS)}"
            )
        if not self.scopes or (strange := set(self.scopes.values()) - SCOPES.keys()):
            told = ", ".join(sorted(strange)) if self.scopes else "nothing"
            raise ConfigError(f"oidc.scopes leads to {told}: scopes are {', '.join(SCOPES)}")


class BadToken(Exception):
    """A token that is not believed, and why: the reason never holds any of it."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who sent a token."""

    subject: str
    scopes: tuple[str, ...]


class Verifier:
    """Checks tokens; fetches the provider's keys with `fetch`. Safe to use from several threads."""

    def __init__(
        self,
        oidc: Oidc,
        fetch: Callable[[str], Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        try:
            import jwt
        except ModuleNotFoundError as fault:
            raise NotInstalled("oidc.issuer", "oidc") from fault
        self._jwt, self._oidc = jwt, oidc
        self._fetch, self._clock = fetch or fetch_json, clock
        self._keys: dict[str | None, Any] = {}
        self._lock = threading.Lock()
        self._fetched = float("-inf")
        self._not_before = float("-inf")
        self._failures = 0

    def verify(self, token: str) -> Bearer:
        """Who sent the token.

        Raises:
            BadToken: it is not believed.
            TransportError: no key of the provider is known, and it cannot be asked.

        """
        jwt, oidc = self._jwt, self._oidc
        try:
            head = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise BadToken("the token is no JWT") from None
        algorithm = head.get("alg")
        if algorithm not in oidc.algorithms:
            raise BadToken("the token is signed by an algorithm that is not in oidc.algorithms")
        key = self._key(head.get("kid"))
        if key.algorithm_name and key.algorithm_name != algorithm:
            raise BadToken("the token is signed by another algorithm than its key is for")
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=oidc.audience,
                issuer=oidc.issuer,
                leeway=oidc.leeway,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.ExpiredSignatureError:
            raise BadToken("the token has expired") from None
        except jwt.PyJWTError as fault:
            raise BadToken(f"the token is not valid: {type(fault).__name__}") from None
        subject = claims.get(oidc.subject)
        if not isinstance(subject, str) or not subject:
            raise BadToken(f"the token has no {oidc.subject}")
        return Bearer(subject[:200], scopes_of(claims, oidc))

    def _key(self, kid: str | None) -> Any:
        known = self._known(kid)
        if self._due(kid):
            # one asks the provider: who can go on with what is known does, and others wait for the answer a little
            if self._lock.acquire(timeout=0 if known is not None else _PATIENCE):
                try:
                    if self._due(kid):
                        self._renew()
                finally:
                    self._lock.release()
            elif known is None:
                raise _away()
            known = self._known(kid)
        if known is not None:
            return known
        if not self._keys:
            raise _away()
        raise BadToken("the token is signed by a key that the provider does not publish")

    def _known(self, kid: str | None) -> Any:
        keys = self._keys
        if kid is None and len(keys) == 1:  # one key needs no name
            return next(iter(keys.values()))
        return keys.get(kid)

    def _due(self, kid: str | None) -> bool:
        now = self._clock()
        stale = now - self._fetched > _FRESH_SECONDS
        return (stale or self._known(kid) is None) and now >= self._not_before

    def _renew(self) -> None:
        try:
            told = self._fetch(self._place())
            found = self._jwt.PyJWKSet.from_dict(told)
        except (TransportError, self._jwt.PyJWTError, ValueError, TypeError, AttributeError) as fault:
            self._failures += 1
            # from now on: a provider that hangs has used up some of it
            self._not_before = self._clock() + min(_MAX_BACK_OFF, 2.0**self._failures)
            if not self._keys:
                raise _away() from fault
            return
        # a token with an unknown key must not make us ask again and again
        self._failures, self._fetched = 0, self._clock()
        self._not_before = self._fetched + 5
        self._keys = {key.key_id: key for key in found.keys if key.public_key_use in (None, "sig")}

    def _place(self) -> str:
        if self._oidc.jwks_url:
            return self._oidc.jwks_url
        told = self._fetch(f"{self._oidc.issuer.rstrip('/')}/.well-known/openid-configuration")
        if not isinstance(told, Mapping) or told.get("issuer") != self._oidc.issuer:
            raise TransportError("the provider describes itself as another issuer", retryable=False)
        return str(told["jwks_uri"])


def _away() -> TransportError:
    return TransportError(
        "the keys of the identity provider cannot be read; tokens cannot be checked until they can",
        retryable=True,
    )


def scopes_of(claims: Mapping[str, Any], oidc: Oidc) -> tuple[str, ...]:
    """The scopes that a token's claim leads to.

    >>> scopes_of({"realm_access": {"roles": ["lineage", "other"]}}, Oidc(claim="realm_access.roles", scopes={"lineage": "read"}))
    ('read',)
    """
    found: Any = claims
    for part in [oidc.claim] if oidc.claim in claims else oidc.claim.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    said = found.split() if isinstance(found, str) else found if isinstance(found, list) else []
    return tuple(
        sorted({oidc.scopes[each] for each in said if isinstance(each, str) and each in oidc.scopes})
    )


def fetch_json(url: str) -> Any:
    """What stands at a url; nobody is followed elsewhere."""
    import httpx

    try:
        answer = httpx.get(url, timeout=10, follow_redirects=False)
        answer.raise_for_status()
        return answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as fault:
        raise TransportError(
            f"the identity provider cannot be asked: {type(fault).__name__}", retryable=True
        ) from None
