"""Messages <-> bytes (MessagePack), and the version check of the handshake."""

from __future__ import annotations

import msgspec

from interlock.engine.ipc.messages import PROTOCOL_VERSION, ClientMessage, Hello, Message, WorkerMessage


class ProtocolError(Exception):
    """The other side of a channel does not speak this protocol."""


_encoder = msgspec.msgpack.Encoder()
_worker_decoder = msgspec.msgpack.Decoder(WorkerMessage)
_client_decoder = msgspec.msgpack.Decoder(ClientMessage)


def encode(message: Message) -> bytes:
    """Any message as bytes."""
    return _encoder.encode(message)


def decode_from_worker(data: bytes) -> WorkerMessage:
    """A message of the worker. Raises ``ProtocolError`` for anything else."""
    try:
        return _worker_decoder.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ProtocolError(f"unreadable message from the worker: {error}") from error


def decode_from_client(data: bytes) -> ClientMessage:
    """A message of the client. Raises ``ProtocolError`` for anything else."""
    try:
        return _client_decoder.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ProtocolError(f"unreadable message from the client: {error}") from error


def check_hello(message: WorkerMessage) -> Hello:
    """The worker's first word. Raises ``ProtocolError`` unless it is a ``Hello`` of our version."""
    if not isinstance(message, Hello):
        raise ProtocolError(f"the worker began with {type(message).__name__} instead of Hello")
    if message.protocol_version != PROTOCOL_VERSION:
        raise ProtocolError(
            f"the worker (interlock {message.package_version}) speaks protocol {message.protocol_version}, "
            f"this process speaks {PROTOCOL_VERSION}; two versions of the package are mixed"
        )
    return message
