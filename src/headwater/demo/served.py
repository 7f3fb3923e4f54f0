"""demo.served: a store -> a server over it inside this process, for as long as it is needed; its address."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from headwater.errors import HeadwaterError
from headwater.event import Limits
from headwater.serve import Serving, run_server
from headwater.serve.app import listen
from headwater.store import Store

PATIENCE = 60.0


@contextmanager
def served(store: Store, port: int) -> Iterator[str]:
    """Serve on this port, or on the next one that is free; on any where it is 0.

    It only shows: what a server does by itself (letting go what is old, calling hooks) is not asked for by looking at a store.
    """
    serving = Serving(port=port, work=False)
    sock = listen(serving, tries=20)
    stop = threading.Event()
    thread = threading.Thread(
        target=run_server,
        args=(store, serving, Limits()),
        kwargs={"listening": sock, "stop": stop},
        name="server",
        daemon=True,
    )
    thread.start()
    try:
        _ready(sock.getsockname()[1], thread)
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        stop.set()
        thread.join(PATIENCE)
        sock.close()


def _ready(port: int, thread: threading.Thread) -> None:
    until = time.monotonic() + PATIENCE
    while thread.is_alive() and time.monotonic() < until:
        asking = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            asking.request("GET", "/ready")
            if asking.getresponse().status == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        finally:
            asking.close()
        time.sleep(0.05)
    raise HeadwaterError("the demo's server did not start; what went wrong stands above")
