"""capture.parents: the environment and Airflow's task context -> the run that this process is part of, and the root above it.

Asked in this order: OPENLINEAGE_PARENT_ID and OPENLINEAGE_ROOT_PARENT_ID, `namespace/job/run`, as other integrations take
them; the task that runs in this very process; the variables that Airflow gives to a task and what it starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as NoConfig
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import sha1
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

from headwater.config import parse_bool
from headwater.errors import ConfigError
from headwater.guard import guard

NO_MAP = -1
"""What Airflow calls the map index of a task that is not mapped; its variables do not tell another."""


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A run above this one."""

    namespace: str
    name: str
    run: str

    def told(self) -> dict[str, str]:
        """As captures take it."""
        return {"run": self.run, "namespace": self.namespace, "name": self.name}


@dataclass(frozen=True, slots=True)
class Ancestry:
    """The run that started us, and the one at the top."""

    parent: Ancestor
    root: Ancestor


def find(environ: Mapping[str, str] | None = None) -> Ancestry | None:
    """The runs above this process; None where there are none, or nothing tells of them.

    >>> find({"OPENLINEAGE_PARENT_ID": "shop/daily.load/0192c3a4-0000-7000-8000-000000000001"}).parent.name
    'daily.load'
    """
    given = os.environ if environ is None else environ
    return _named(given) or (_of_task() if environ is None else None) or _of_variables(given)


def _named(environ: Mapping[str, str]) -> Ancestry | None:
    parent = _parsed(environ.get("OPENLINEAGE_PARENT_ID", ""))
    return (
        Ancestry(parent, _parsed(environ.get("OPENLINEAGE_ROOT_PARENT_ID", "")) or parent) if parent else None
    )


def _parsed(text: str) -> Ancestor | None:
    """From `namespace/job/run`; a namespace may have slashes of its own."""
    namespace, _, rest = text.strip().rpartition("/")
    namespace, _, name = namespace.rpartition("/")
    with suppress(ValueError):
        return Ancestor(namespace, name, str(UUID(rest))) if namespace and name else None
    return None


def _of_task() -> Ancestry | None:
    """The task that runs in this process, by the words of Airflow's OpenLineage provider."""
    if "airflow" not in sys.modules:  # in a task it is there; elsewhere its import costs seconds
        return None
    with guard("asking Airflow for the task that runs"):
        task = _task_instance()
        if task is None:
            return None
        macros = import_module("airflow.providers.openlineage.plugins.macros")
        parent = _parsed(macros.lineage_parent_id(task))
        root = (
            _parsed(macros.lineage_root_parent_id(task))
            if hasattr(macros, "lineage_root_parent_id")
            else None
        )
        return Ancestry(parent, root or parent) if parent else None
    return None


def _task_instance() -> Any:
    """The task instance of the context that is current; None outside of a task, or without the provider."""
    for module in ("airflow.sdk", "airflow.operators.python"):
        try:
            return import_module(module).get_current_context()["ti"]
        except (ImportError, AttributeError, KeyError):
            continue
        except RuntimeError:  # no task runs here
            return None
    return None


def _of_variables(environ: Mapping[str, str]) -> Ancestry | None:
    dag, task = environ.get("AIRFLOW_CTX_DAG_ID"), environ.get("AIRFLOW_CTX_TASK_ID")
    date = environ.get("AIRFLOW_CTX_LOGICAL_DATE") or environ.get("AIRFLOW_CTX_EXECUTION_DATE")
    attempt = environ.get("AIRFLOW_CTX_TRY_NUMBER")
    if not (dag and task and date and attempt) or _switched_off(environ):
        return None
    try:
        at = datetime.fromisoformat(date)
    except ValueError:
        return None
    namespace = _namespace(environ)
    run = static_uuid(at, f"{namespace}.{dag}.{task}.{attempt}.{NO_MAP}")
    root = static_uuid(at, f"{namespace}.{dag}.0")  # of a DAG run that was never cleared
    return Ancestry(Ancestor(namespace, f"{dag}.{task}", run), Ancestor(namespace, dag, root))


def static_uuid(at: datetime, text: str) -> str:
    """The run id that OpenLineage's client makes of a time and a text: always the same, a UUID of version 7."""
    at = at.astimezone(timezone.utc)
    digest = sha1(at.isoformat().encode() + text.encode(), usedforsecurity=False).digest()
    number = (int(at.timestamp() * 1000) & (1 << 48) - 1) << 80 | int.from_bytes(digest, "big") >> 84
    return str(UUID(int=number & ~(0xF << 76) & ~(0x3 << 62) | 7 << 76 | 2 << 62))


def _switched_off(environ: Mapping[str, str]) -> bool:
    """Where Airflow tells nothing of its tasks, a parent would be a run that nobody knows."""
    with suppress(ConfigError):
        return parse_bool(environ.get("AIRFLOW__OPENLINEAGE__DISABLED", "false"))
    return False


def _namespace(environ: Mapping[str, str]) -> str:
    """As the provider finds it: Airflow's own setting, in a variable or its file, then OpenLineage's."""
    found = environ.get("AIRFLOW__OPENLINEAGE__NAMESPACE") or _configured(environ)
    return found or environ.get("OPENLINEAGE_NAMESPACE") or "default"


def _configured(environ: Mapping[str, str]) -> str:
    home = environ.get("AIRFLOW_HOME") or os.path.join(environ.get("HOME", ""), "airflow")
    file = Path(environ.get("AIRFLOW_CONFIG") or os.path.join(home, "airflow.cfg"))
    with suppress(OSError, NoConfig, UnicodeDecodeError):
        parser = ConfigParser(interpolation=None, strict=False)
        parser.read_string(file.read_text(encoding="utf-8"))
        return parser.get("openlineage", "namespace", fallback="").strip()
    return ""
