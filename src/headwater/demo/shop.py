"""demo.shop: nothing -> a small shop: an HTTP API with its orders, and a SQLite database of its customers and products.

Since its last release the API writes prices as people in the customer's country do: `12,50` for an Austrian. Nobody
told those who read it.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Order = dict[str, Any]

CUSTOMERS = [
    (1, "Ada", "IE"),
    (2, "Grace", "US"),
    (3, "Niklaus", "AT"),
    (4, "Edsger", "US"),
    (5, "Hedy", "AT"),
    (6, "Kay", "IE"),
]
"""Number, name, country."""
PRODUCTS = [
    ("MUG", "Mug", "kitchen", 1250),
    ("PAN", "Pan", "kitchen", 4900),
    ("LAMP", "Desk lamp", "office", 3990),
    ("PEN", "Fountain pen", "office", 2475),
]
"""What it is called, its name, its category, its price in cents."""
COMMA = {"AT"}
"""Countries where prices are written with a comma."""
PAGE = 25


def orders(number: int = 60) -> list[Order]:
    """The orders of a day, the same each time."""
    return [_order(at) for at in range(number)]


def _order(at: int) -> Order:
    customer, name, country = CUSTOMERS[at % len(CUSTOMERS)]
    return {
        "id": 1000 + at,
        "placedAt": f"2026-03-02T{8 + at // 10:02}:{at % 10 * 6:02}:00Z",
        "status": "cancelled" if at % 10 == 9 else "paid",
        "customer": {"id": customer, "name": name},
        "lines": [_line(at + more, country) for more in range(1 + at % 3)],
        "note": f"ring twice, {name} is in the garden" if at % 4 == 0 else None,
    }


def _line(at: int, country: str) -> dict[str, Any]:
    sku, _, _, cents = PRODUCTS[at % len(PRODUCTS)]
    price = f"{cents // 100}.{cents % 100:02}"
    return {
        "sku": sku,
        "quantity": 1 + at % 2,
        "price": price.replace(".", ",") if country in COMMA else price,
        "giftWrap": at % 5 == 0,
    }


def make_database(path: Path) -> str:
    """The shop's database in a new file; its url."""
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT)")
        base.executemany("INSERT INTO customers VALUES (?, ?, ?)", CUSTOMERS)
        base.execute("CREATE TABLE products (sku TEXT PRIMARY KEY, title TEXT, category TEXT, cents INTEGER)")
        base.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", PRODUCTS)
    return f"sqlite:///{path}"


@contextmanager
def open_api(served: Sequence[Order]) -> Iterator[str]:
    """The shop's API on a free port of this machine, for as long as it is needed; its address."""

    class Api(BaseHTTPRequestHandler):
        """GET /v1/orders?page=N: some orders, and where the next ones are."""

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if url.path != "/v1/orders":
                self.send_error(404)
                return
            page = int(parse_qs(url.query).get("page", ["0"])[0])
            end = (page + 1) * PAGE
            more = f"{address}/v1/orders?page={page + 1}" if end < len(served) else None
            body = json.dumps({"orders": served[page * PAGE : end], "next": more}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the demo tells what happens."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, name="shop API", daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
