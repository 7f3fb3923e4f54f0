"""cli._story: the demo as it is played -> progress on stderr, then on stdout what there is to tell of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from headwater.cli._paper import paper

if TYPE_CHECKING:
    from headwater.demo import Tale

_LOOK = 0.5  # seconds between looks at how many events there are


class Curtain:
    """Opens for an act with its name and closes with what it took; `events` says how many have come by now."""

    def __init__(self, events: Callable[[], int]) -> None:
        self._console = Console(stderr=True)
        self._events = events

    @contextmanager
    def __call__(self, name: str) -> Iterator[Callable[[], None]]:
        """An act goes on."""
        began = looked = time.monotonic()
        before = self._events()
        with self._console.status(name) as status:

            def tick() -> None:
                nonlocal looked
                if (now := time.monotonic()) - looked > _LOOK:
                    looked = now
                    status.update(f"{name}  [dim]{now - began:.0f} s, {self._events() - before} events[/dim]")

            yield tick
        took, came = time.monotonic() - began, self._events() - before
        self._console.print(
            f"[green]✓[/green] {name}  [dim]{took:.1f} s, {came} events[/dim]",
            highlight=False,
            soft_wrap=True,
        )

    def say(self, text: str) -> None:
        """Tell what is not as it might be."""
        self._console.print(f"[yellow]![/yellow] {escape(text)}", highlight=False, soft_wrap=True)


def print_tale(tale: Tale, lake: Path) -> None:
    """What failed, where it comes from, who is to blame and what breaks."""
    console = paper()

    def named(node: str) -> str:
        """A dataset as people call it: tables of the lake without the folder that it lies in."""
        bare = node.removeprefix("dataset:").replace(f"file:{lake}", "lake", 1)
        return escape(bare.replace(":/v1/", "/v1/") if bare.startswith("http") else bare)

    found = tale.incident
    if found:
        test = f"{found['test']}({found['column']})"
        console.print(
            f"\n[red]✗[/red] [bold]{escape(test)} failed on {named(found['dataset'])}[/bold]: {escape(found['message'] or '')}"
        )
    console.print("\nWhere the column comes from:")
    width = max(len(named(hop.dataset)) for hop in tale.path)
    for hop in tale.path:
        if hop.job:
            console.print(f"    [dim]↓ {escape(_job(hop.job))}  {escape(_kinds(hop.kinds))}[/dim]")
        console.print(f"  [green]{named(hop.dataset):{width}}[/green]  {escape(hop.field)}")
    if not found:
        return
    blamed = found["blamed"]
    console.print("\nWho is to blame:")
    console.print(f"  [cyan]{escape(_job(blamed['job']))}[/cyan]")
    console.print(f"  run {blamed['runId']}, which ended at {_clock(blamed['endedAt'])}")
    console.print("\nWhat breaks with it:")
    for each in found["impact"]["datasets"]:
        reached = f"  {', '.join(each['columns'])}" if each.get("columns") else ""
        console.print(f"  [green]{named(each['id'])}[/green]{escape(reached)}")


def _job(node: str) -> str:
    return node.removeprefix("job:").partition(":")[2] or node


def _kinds(kinds: tuple[str, ...]) -> str:
    """`DIRECT:TRANSFORMATION` as `transformation`."""
    return ", ".join(kind.rpartition(":")[2].lower() for kind in kinds)


def _clock(at: Any) -> str:
    return f"{datetime.fromisoformat(str(at).replace('Z', '+00:00')).astimezone():%H:%M:%S}"
