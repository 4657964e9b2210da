"""Every message between the API process and the worker. Changing one means raising ``PROTOCOL_VERSION``.

The first message on a connection is the worker's ``Hello``; the client checks the version and closes the
connection on a mismatch. All messages are msgspec structs tagged with their class name, encoded as
MessagePack.
"""

from __future__ import annotations

import msgspec

from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineOutput, EnginePhase, EngineRequest, EngineStats

PROTOCOL_VERSION = 7


class Message(msgspec.Struct, frozen=True, tag=True):
    """Base of all messages."""


# worker -> client


class Hello(Message, frozen=True):
    """First word of a worker."""

    protocol_version: int
    package_version: str
    pid: int


class PhaseChanged(Message, frozen=True):
    """The worker entered a phase; ``detail`` says why when the phase is ``failed``."""

    phase: EnginePhase
    detail: str = ""


class Ready(Message, frozen=True):
    """The model is loaded and warm."""

    context_tokens: int
    num_slots: int
    vocab_size: int
    runner: str


class Outputs(Message, frozen=True):
    """Outputs of one step, at most one per request."""

    outputs: tuple[EngineOutput, ...]


class Prepared(Message, frozen=True):
    """Answer to ``Prepare``. ``code`` is "" on success, else a code of ``errors.CATALOG``."""

    ticket: int
    code: str = ""
    message: str = ""


class StatsAnswer(Message, frozen=True):
    """Answer to ``StatsQuery``."""

    ticket: int
    stats: EngineStats


# client -> worker


class Submit(Message, frozen=True):
    """Generate."""

    request: EngineRequest


class Abort(Message, frozen=True):
    """End these requests; unknown ids are ignored."""

    request_ids: tuple[str, ...]


class Pause(Message, frozen=True):
    """Make no tokens for these requests until ``Unpause``: their readers lag. Unknown ids are ignored."""

    request_ids: tuple[str, ...]


class Unpause(Message, frozen=True):
    """Go on with these requests; unknown ids are ignored."""

    request_ids: tuple[str, ...]


class Prepare(Message, frozen=True):
    """Compile and cache."""

    ticket: int
    constraint: LoweredConstraint


class StatsQuery(Message, frozen=True):
    """Ask for ``StatsAnswer``."""

    ticket: int


class Shutdown(Message, frozen=True):
    """Finish running requests for up to ``drain_s`` seconds, then exit with status 0."""

    drain_s: float


WorkerMessage = Hello | PhaseChanged | Ready | Outputs | Prepared | StatsAnswer
ClientMessage = Submit | Abort | Pause | Unpause | Prepare | StatsQuery | Shutdown
