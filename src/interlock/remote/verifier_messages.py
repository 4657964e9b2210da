"""What passes between the engine and its verifier."""

from __future__ import annotations

import msgspec

from interlock.child import Frames
from interlock.core.constraint import LoweredConstraint


class Setup(msgspec.Struct, frozen=True, tag=True):
    """First frame to a verifier. model: what the tokenizer is read from."""

    model: str


class Compile(msgspec.Struct, frozen=True, tag=True):
    """Make ``constraint`` ready."""

    ticket: int
    constraint: LoweredConstraint


class Open(msgspec.Struct, frozen=True, tag=True):
    """Follow a sequence under ``constraint`` from its start. Not answered: the first ``Follow`` tells."""

    sequence: int
    constraint: LoweredConstraint


class Follow(msgspec.Struct, frozen=True, tag=True):
    """The next tokens of a sequence. only_try: say what would be taken, and take nothing."""

    ticket: int
    sequence: int
    token_ids: tuple[int, ...]
    only_try: bool = False


class Close(msgspec.Struct, frozen=True, tag=True):
    """Forget a sequence. Not answered."""

    sequence: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Answer to ``Setup``."""


class Compiled(msgspec.Struct, frozen=True, tag=True):
    """Answer to ``Compile``. code: of the error, empty for none."""

    ticket: int
    code: str = ""
    message: str = ""


class Followed(msgspec.Struct, frozen=True, tag=True):
    """Answer to ``Follow``. num_taken: how many of its tokens the constraint allows. is_accepting: it may end behind
    them. error: why not more were taken."""

    ticket: int
    num_taken: int
    is_accepting: bool
    error: str = ""


ToVerifier = Setup | Compile | Open | Follow | Close
FromVerifier = Ready | Compiled | Followed

TO_VERIFIER = Frames[ToVerifier](ToVerifier)
FROM_VERIFIER = Frames[FromVerifier](FromVerifier)
