"""What passes between the pool and its helpers."""

from __future__ import annotations

import msgspec

from interlock.child import Frames
from interlock.config import DEFAULT_SCHEMA_LIMITS, SchemaLimits
from interlock.core.constraint import LoweredConstraint
from interlock.errors import InterlockError, Problem


class Setup(msgspec.Struct, frozen=True, tag=True):
    """First frame to a helper. special_tokens: spelling to id. memory_bytes: what a job may allocate.
    cpu_s: processor seconds that a job may take. documents: schemas that references may name, by URI, as JSON text. guards: the engine has them.
    schema_limits: of each schema."""

    special_tokens: dict[str, int]
    memory_bytes: int
    cpu_s: float
    documents: dict[str, str] = {}
    guards: bool = True
    schema_limits: SchemaLimits = DEFAULT_SCHEMA_LIMITS


class Job(msgspec.Struct, frozen=True, tag=True):
    """A spec to lower, as its canonical JSON text. documents: see ``Setup``; these are for this job alone."""

    spec: str
    documents: dict[str, str] = {}


class Check(msgspec.Struct, frozen=True, tag=True):
    """Report on a spec whose root is a ``JsonValue``. instances: JSON texts. documents: more of them."""

    spec: str
    instances: tuple[str, ...]
    documents: dict[str, str]


class Validate(msgspec.Struct, frozen=True, tag=True):
    """Which documents are valid. pairs: schema and document, as JSON text."""

    pairs: tuple[tuple[str, str], ...]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Answer to ``Setup``."""


class Lowered(msgspec.Struct, frozen=True, tag=True):
    """The spec was lowered and compiles. seconds: time it took in the helper."""

    constraint: LoweredConstraint
    seconds: float


class Checked(msgspec.Struct, frozen=True, tag=True):
    """The report of a ``Check``, as JSON."""

    report: bytes


class Validated(msgspec.Struct, frozen=True, tag=True):
    """For each pair of a ``Validate``; ``None`` where the validator could not tell."""

    valid: tuple[bool | None, ...]


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The spec was refused: the fields of an ``InterlockError``."""

    code: str
    message: str
    param: str | None
    problems: tuple[Problem, ...]
    hint: str | None
    seconds: float

    @staticmethod
    def of(error: InterlockError, seconds: float) -> Refused:
        """``error`` as a message."""
        return Refused(error.code, error.message, error.param, error.problems, error.hint, seconds)

    def error(self) -> InterlockError:
        """Inverse of ``of``."""
        return InterlockError(self.code, self.message, param=self.param, problems=self.problems, hint=self.hint)


AnyJob = Job | Check | Validate
Answer = Lowered | Checked | Validated | Refused
ToHelper = Setup | AnyJob
FromHelper = Ready | Answer

TO_HELPER = Frames[ToHelper](ToHelper)
FROM_HELPER = Frames[FromHelper](FromHelper)
