"""transport._auth: options about who we are and whom we trust -> headers of a request, and a TLS context.

`auth` is a table with a `type`: `api_key`; `oauth`, the client credentials of OAuth 2; or `package.module:name`, a
callable of your own that is given the rest of the table and answers an object with `get_bearer()`, or that is one.
"""

from __future__ import annotations

import os
import re
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from headwater import plugins
from headwater.errors import ConfigError, TransportError
from headwater.guard import guard
from headwater.transport._options import flag

if TYPE_CHECKING:
    import httpx

_EARLY = 30.0  # seconds before its end at which a token is renewed


class Authorization:
    """The headers that say who sends; this one says nothing, or has a key."""

    def __init__(self, key: str | None = None) -> None:
        self._key = header("api_key", key) if key else None
        self.fixed = {"Authorization": f"Bearer {self._key}", "X-API-Key": self._key} if self._key else {}

    def current(self, client: httpx.Client) -> dict[str, str]:
        """Headers that may change from request to request."""
        return {}

    def renew(self) -> bool:
        """Forget a token that was refused; whether there will be another."""
        return False

    def secrets(self) -> list[str]:
        """What must not be shown."""
        return [self._key] if self._key else []


class OAuth(Authorization):
    """A token for client credentials, fetched when one is needed."""

    def __init__(
        self,
        *,
        token_url: str,
        client_id: str,
        client_secret: str,
        scope: str | None = None,
        method: str = "post",
    ) -> None:
        super().__init__()
        if method not in ("post", "basic"):
            raise ConfigError(f"auth.method: {method!r} is neither 'post' nor 'basic'")
        self._url, self._secret = token_url, client_secret
        self._form = {"grant_type": "client_credentials"}
        self._basic: dict[str, str] = {}
        if method == "basic":
            pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
            self._basic = {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
        else:
            self._form |= {"client_id": client_id, "client_secret": client_secret}
        if scope:
            self._form["scope"] = scope
        self._token, self._until = "", 0.0

    def current(self, client: httpx.Client) -> dict[str, str]:
        """The token, fetched anew when it nears its end."""
        if not self._token or monotonic() > self._until:
            answer = client.post(self._url, data=self._form, headers=self._basic)
            try:
                told = answer.json() if answer.is_success else {}
            except ValueError:  # the page of a proxy, say
                told = {}
            if not isinstance(told, dict) or not told.get("access_token"):
                code = answer.status_code
                raise TransportError(
                    f"{self._url.partition('?')[0]} answered {code} instead of a token: check client_id and client_secret",
                    retryable=code == 429 or code >= 500,
                )
            self._token = str(told["access_token"])
            self._until = monotonic() + _seconds(told.get("expires_in")) - _EARLY
        return {"Authorization": f"Bearer {self._token}"}

    def renew(self) -> bool:
        """Fetch another next time."""
        self._token = ""
        return True

    def secrets(self) -> list[str]:
        """Secret and token."""
        return [each for each in (self._secret, self._token) if each]


class Provided(Authorization):
    """A token from a callable of the user's own."""

    def __init__(self, provide: Callable[[], str]) -> None:
        super().__init__()
        self._provide, self._token = provide, ""

    def current(self, client: httpx.Client) -> dict[str, str]:
        """Ask for the token; it decides itself how long one lasts."""
        with guard("asking `auth` for a token") as asking:  # what a user's code may raise, nobody knows
            self._token = header("auth", str(self._provide() or "").removeprefix("Bearer "))
        if asking.fault is not None:
            raise TransportError(f"auth: gave no token: {type(asking.fault).__name__}", retryable=True)
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def secrets(self) -> list[str]:
        """The token."""
        return [self._token] if self._token else []


def authorization(api_key: str | None, auth: Mapping[str, Any] | None) -> Authorization:
    """What `api_key` and `auth` ask for.

    >>> authorization("k", None).fixed
    {'Authorization': 'Bearer k', 'X-API-Key': 'k'}
    """
    if auth is None:
        return Authorization(api_key)
    if not isinstance(auth, Mapping):
        raise ConfigError("auth: must be a table with a `type`")
    options = dict(auth)
    kind = options.pop("type", "api_key")
    if kind == "api_key":
        plugins.check("auth 'api_key'", _key, options)
        return _key(**options)
    if kind == "oauth":
        plugins.check("auth 'oauth'", OAuth, options)
        return OAuth(**options)
    if not isinstance(kind, str) or ":" not in kind:
        raise ConfigError(f"auth.type: {kind!r} is none of api_key, oauth or package.module:name")
    try:
        made = plugins.find("auth", kind, {kind: (kind, None)})(**options)
    except (ImportError, AttributeError, TypeError) as fault:
        raise ConfigError(f"auth.type: {kind!r} cannot be used: {fault}") from None
    provide = getattr(made, "get_bearer", made)
    if not callable(provide):
        raise ConfigError(f"auth.type: {kind!r} gives neither a callable nor an object with get_bearer()")
    return Provided(provide)


def header(setting: str, value: object) -> str:
    """A header's value, without the line break that ends the file it was read from.

    Raises:
        ConfigError: a header cannot hold it; what it is stays untold, as it may be a secret.

    """
    bare = str(value).strip()
    if not re.fullmatch(r"[\t -~]*", bare):
        raise ConfigError(
            f"{setting}: holds a character that no header can: a line break, or one beyond ASCII"
        )
    return bare


def _seconds(told: object) -> float:
    """How long a token lasts; a server that says nothing of use is asked again soon."""
    try:
        return float(str(told or 300))
    except ValueError:
        return 300.0


def _key(*, api_key: str) -> Authorization:
    return Authorization(api_key)


def trust(verify: bool | str, client_cert: str | None, client_key: str | None) -> bool | ssl.SSLContext:
    """Whom to believe, and the certificate to show; a context where a yes or no does not do."""
    context = _trust(verify)
    if client_key and not client_cert:
        raise ConfigError("client_key: needs client_cert, the certificate that it belongs to")
    if client_cert:
        if isinstance(context, bool):
            believe, context = context, ssl.create_default_context()
            if not believe:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            context.load_cert_chain(client_cert, client_key)
        except (OSError, ssl.SSLError) as fault:
            raise ConfigError(f"client_cert: {client_cert!r} cannot be used: {fault}") from None
    return context


def _trust(value: bool | str) -> bool | ssl.SSLContext:
    if isinstance(value, str) and os.path.exists(value):
        try:
            folder = os.path.isdir(value)
            return ssl.create_default_context(
                cafile=None if folder else value, capath=value if folder else None
            )
        except ssl.SSLError as fault:
            raise ConfigError(f"verify: {value!r} holds no certificate: {fault}") from None
    try:
        return flag("verify", value)
    except ConfigError:
        raise ConfigError(f"verify: {value!r} is neither yes, no nor a file of certificates") from None
