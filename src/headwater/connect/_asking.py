"""connect._asking: a path of a server -> its JSON, or a TransportError that says in one line what is wrong with it.

Whatever a server or a proxy before it answers, it costs no more than `max_bytes` of memory and a few times `timeout`, and no text
of it that may hold a secret reaches a message.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.errors import TransportError
from headwater.naming import scrub
from headwater.transport._auth import trust

if TYPE_CHECKING:
    import httpx

    from headwater.connect import Auth

PATIENCE = 3
"""How many times `timeout` a whole answer may take, each part of which comes in time."""
_WORDS = {
    401: "it wants to know who asks: set auth",
    403: "it does not let us: its access rules forbid it",
    404: "there is no such path: is it the right url?",
    407: "the proxy wants to know who asks",
    429: "it is asked too often: set a longer interval",
}


class Server:
    """A server that answers JSON; several urls of one are tried in their order, the last that answered first."""

    def __init__(self, urls: str, auth: Auth, *, timeout: float, verify: bool | str, max_bytes: int) -> None:
        import httpx

        self._urls = [each.strip().rstrip("/") for each in urls.split(",") if each.strip()]
        self._max, self._patience = max_bytes, timeout * PATIENCE
        headers = {"Accept": "application/json"}
        if auth.token:
            headers["Authorization"] = f"Bearer {auth.token}"
        basic = httpx.BasicAuth(auth.username, auth.password) if auth.username and not auth.token else None
        secure = any(each.startswith("https") for each in self._urls)
        self._client = httpx.Client(
            timeout=timeout,
            headers=headers,
            auth=basic,
            verify=trust(verify, auth.client_cert or None, auth.client_key or None) if secure else False,
            follow_redirects=False,
        )

    def get(self, path: str) -> Any:
        """What stands at a path.

        Raises:
            TransportError: it did not answer, or not with what was asked for; its cause is `missing` where the server
                itself, and no proxy, says that there is no such thing.

        """
        fault: TransportError | None = None
        for at, url in enumerate(self._urls):
            try:
                answer = self._get(url, path)
            except TransportError as error:
                fault = error
                if not error.retryable:
                    break
            else:
                if at:
                    self._urls.insert(0, self._urls.pop(at))
                return answer
        raise fault or TransportError("no url is set", retryable=False, cause="unreachable")

    def close(self) -> None:
        """Give back the connections."""
        self._client.close()

    def _get(self, url: str, path: str) -> Any:
        import httpx

        shown = scrub(url)
        try:
            with self._client.stream("GET", f"{url}{path}") as answer:
                body = self._body(shown, answer)
                if not answer.is_success:
                    raise _refused(shown, answer.status_code, body)
        except httpx.InvalidURL:
            raise TransportError(f"{shown} is no url", retryable=False, cause="url") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise TransportError(
                f"{shown} does not answer: {type(error).__name__}", retryable=True, cause="unreachable"
            ) from None
        try:
            return msgspec.json.decode(body)
        except (ValueError, RecursionError):
            kind = "a web page" if body.lstrip()[:1] == b"<" else "something else"
            raise TransportError(
                f"{shown} answered {kind} instead of JSON: is a proxy before it?",
                retryable=True,
                cause="no_json",
            ) from None

    def _body(self, shown: str, answer: httpx.Response) -> bytes:
        parts, size, until = [], 0, monotonic() + self._patience
        for part in answer.iter_bytes():
            size += len(part)
            if monotonic() > until:
                raise TransportError(
                    f"{shown} does not answer: its answer does not end", retryable=True, cause="unreachable"
                )
            if size > self._max:
                raise TransportError(
                    f"{shown} answered more than {self._max} bytes: raise max_bytes if it has so many connectors",
                    retryable=False,
                    cause="too_large",
                )
            parts.append(part)
        return b"".join(parts)


def _refused(shown: str, code: int, body: bytes) -> TransportError:
    if code == 404 and b'"error_code"' in body:
        return TransportError(f"{shown} has no such thing", retryable=False, cause="missing")
    word = _WORDS.get(code) or ("it cannot do so now" if code >= 500 else "it refuses")
    if 300 <= code < 400:
        word = "it sends us elsewhere, which is not followed: set the url that it leads to"
    return TransportError(
        f"{shown} answered {code}: {word}", retryable=code >= 500 or code == 429, cause=f"http_{code}"
    )
