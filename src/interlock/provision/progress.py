"""Progress of long steps: a small protocol, and what shows it on a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as RichBars


class ProgressHandle(Protocol):
    """One step under way."""

    def advance(self, num_bytes: int) -> None:
        """More bytes are done."""
        ...

    def close(self) -> None:
        """The step is over, done or not. May be called twice."""
        ...


class Progress(Protocol):
    """Where steps announce themselves. Called from one thread at a time."""

    def start(self, label: str, total_bytes: int | None) -> ProgressHandle:
        """A step begins; ``None`` when its size is unknown."""
        ...


class NoProgress:
    """Shows nothing. Its own handle."""

    def start(self, label: str, total_bytes: int | None) -> NoProgress:  # noqa: ARG002  the protocol's signature
        return self

    def advance(self, num_bytes: int) -> None:
        pass

    def close(self) -> None:
        pass


class TerminalProgress:
    """Bars on a terminal, gone once their step is over. A context manager."""

    def __init__(self, console: Console | None = None) -> None:
        self._bars = RichBars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=console or Console(stderr=True),
            transient=True,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def start(self, label: str, total_bytes: int | None) -> ProgressHandle:
        return _Bar(self._bars, self._bars.add_task(label, total=total_bytes))


class _Bar:
    def __init__(self, bars: RichBars, task: TaskID) -> None:
        self._bars = bars
        self._task: TaskID | None = task

    def advance(self, num_bytes: int) -> None:
        if self._task is not None:
            self._bars.advance(self._task, num_bytes)

    def close(self) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None
