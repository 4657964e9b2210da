"""The worker's end of the channel."""

from __future__ import annotations

from collections.abc import Iterator

import zmq

from interlock.engine.ipc.channel import decode_from_client, encode
from interlock.engine.ipc.messages import ClientMessage, WorkerMessage

_HIGH_WATER_MARK = 1000
"""Messages that may queue towards a client that does not read; then ``send`` blocks."""


class WorkerEndpoint:
    """Sends to and receives from the one client. Of one thread."""

    def __init__(self, address: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.set_hwm(_HIGH_WATER_MARK)
        self._socket.connect(address)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)

    def also_wait_for(self, file_descriptor: int) -> None:
        """``wait`` returns as well when this descriptor is readable."""
        self._poller.register(file_descriptor, zmq.POLLIN)

    def send(self, message: WorkerMessage) -> None:
        """Queue a message; blocks while the client lags too far behind."""
        self._socket.send(encode(message))

    def received(self) -> Iterator[ClientMessage]:
        """Messages that are there now. Raises ``ProtocolError`` for one that is none."""
        while True:
            try:
                data = self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            yield decode_from_client(data)

    def wait(self, timeout_s: float | None) -> None:
        """Until there is something to do, or for ``timeout_s``."""
        self._poller.poll(None if timeout_s is None else max(0, round(timeout_s * 1000)))

    def close(self) -> None:
        """Deliver what is queued, for up to a second, and close."""
        self._socket.close(linger=1000)
        self._context.term()
