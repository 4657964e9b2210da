"""What passes between the engine and its verifier: msgpack frames with a length of four bytes before each."""

from __future__ import annotations

import struct

import msgspec

from interlock.core.constraint import LoweredConstraint

HEADER = struct.Struct("!I")


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

_encoder = msgspec.msgpack.Encoder()
_to_verifier = msgspec.msgpack.Decoder(ToVerifier)
_from_verifier = msgspec.msgpack.Decoder(FromVerifier)


def frame(message: ToVerifier | FromVerifier) -> bytes:
    """``message`` with its header."""
    body = _encoder.encode(message)
    return HEADER.pack(len(body)) + body


def decode_to_verifier(body: bytes) -> ToVerifier:
    """Raises ``msgspec.MsgspecError`` for anything else."""
    return _to_verifier.decode(body)


def decode_from_verifier(body: bytes) -> FromVerifier:
    """Raises ``msgspec.MsgspecError`` for anything else."""
    return _from_verifier.decode(body)
