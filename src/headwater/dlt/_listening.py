"""dlt._listening: what dlt forgets on its way -> kept: names of Arrow columns, readers of files, what a copied resource reads.

dlt renames the columns of an Arrow table while it extracts it, and keeps no trace of it: its extractor is listened to, which
sees the table before that. A resource that is copied (`with_name`) forgets what it reads: its copy is reminded. And no trace
tells whether a transformer of files is one of dlt's own, whose items have the fields of the files.
"""

from __future__ import annotations

import functools
from typing import Any

from headwater.capture.dlt.recording import Heard
from headwater.guard import guard

HEARD: dict[str, Heard] = {}
"""By load id, until the package is extracted."""
MOST = 100
_READERS = "dlt.sources.filesystem.readers"
_HOOKED: list[bool] = []


def listen() -> None:
    """From now on: once in a process."""
    if _HOOKED:
        return
    _HOOKED.append(True)
    _to_arrow()
    _to_copies()
    _to_readers()


def _to_arrow() -> None:
    with guard("listening to Arrow tables"):
        from dlt.extract.extractors import ArrowExtractor

        plain = ArrowExtractor._apply_contract_filters

        @functools.wraps(plain)
        def filtered(self: Any, item: Any, resource: Any, static_table_name: Any) -> Any:
            with guard("reading the names of an Arrow table"):
                _note(self, item, resource, static_table_name)
            return plain(self, item, resource, static_table_name)

        ArrowExtractor._apply_contract_filters = filtered  # type: ignore[method-assign]


def _note(extractor: Any, item: Any, resource: Any, static_table_name: Any) -> None:
    naming = extractor.naming
    table = static_table_name or extractor._get_dynamic_table_name(resource, item)
    found = _heard(extractor.load_id).names.setdefault(naming.normalize_table_identifier(table), {})
    for name in item.schema.names:
        found.setdefault(naming.normalize_identifier(name), str(name))


def _heard(load_id: Any) -> Heard:
    found = HEARD.setdefault(str(load_id), Heard())
    while len(HEARD) > MOST:
        HEARD.pop(next(iter(HEARD)))
    return found


def _to_copies() -> None:
    with guard("listening to copies of resources"):
        from dlt.extract.resource import DltResource

        plain = DltResource._clone

        @functools.wraps(plain)
        def clone(self: Any, *args: Any, **options: Any) -> Any:
            made = plain(self, *args, **options)
            with guard("telling a copied resource what it reads"):
                _remind(made, self)
            return made

        DltResource._clone = clone  # type: ignore[method-assign]


def _remind(copy: Any, original: Any) -> None:
    reads = getattr(original, "_inputs", None)  # dlt 1.30 or newer
    if reads and not copy._inputs:
        copy._inputs.extend({**each, "resource_name": copy.name} for each in reads)


def _to_readers() -> None:
    with guard("listening to readers of files"):
        from dlt.extract.extract import Extract

        plain = Extract._compute_metrics

        @functools.wraps(plain)
        def metrics(self: Any, load_id: str, source: Any) -> Any:
            with guard("looking for readers of files"):
                for resource in source.selected_resources.values():
                    if getattr(resource._pipe.gen, "__module__", None) == _READERS:
                        _heard(load_id).readers.add(str(resource.name))
            return plain(self, load_id, source)

        Extract._compute_metrics = metrics  # type: ignore[method-assign]
