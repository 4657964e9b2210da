"""The outermost layer: a bound on headers, a request id on every answer, and no exception without one."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock import log
from interlock.api.errors import error_response, internal_error
from interlock.errors import InterlockError

_LOG = log.get(__name__)
_SANE_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)


class Edge:
    """ASGI middleware. A client's ``x-request-id`` is kept, else one is made; answers carry it. What no
    handler caught becomes a 500 without a traceback."""

    def __init__(self, app: ASGIApp, *, max_headers: int, max_header_bytes: int) -> None:
        self._app = app
        self._max_headers = max_headers
        self._max_header_bytes = max_header_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _SANE_ID.fullmatch(given) else f"req_{uuid.uuid4().hex}"
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        try:
            problem = self._problem(scope["headers"])
            if problem is not None:
                await error_response(problem, scope["path"])(scope, receive, send_with_id)
                return
            await self._app(scope, receive, send_with_id)
        except Exception:  # noqa: BLE001  the process edge: every request gets an answer
            _LOG.exception("request %s: %s %s failed", request_id, scope["method"], scope["path"])
            if not started:
                await error_response(internal_error(), scope["path"])(scope, receive, send_with_id)

    def _problem(self, headers: Collection[tuple[bytes, bytes]]) -> InterlockError | None:
        if len(headers) > self._max_headers:
            return InterlockError("headers_too_large", f"a request may have {self._max_headers} headers")
        if sum(len(name) + len(value) for name, value in headers) > self._max_header_bytes:
            return InterlockError("headers_too_large", f"headers may have {self._max_header_bytes} bytes")
        return None
