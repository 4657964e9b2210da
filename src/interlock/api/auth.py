"""API keys: ``Authorization: Bearer KEY`` or ``x-api-key: KEY``. Without configured keys every request passes."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from interlock.api.errors import error_response
from interlock.errors import InterlockError

OPEN_PATHS = frozenset({"/health"})  # probes of orchestrators carry no key


class RequireKey:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, *, keys: Sequence[str]) -> None:
        self._app = app
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._keys or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        problem = self._problem(Headers(scope=scope))
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await error_response(InterlockError("invalid_api_key", problem), scope["path"])(
                scope, receive, send
            )

    def _problem(self, headers: Headers) -> str | None:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            key = headers.get("x-api-key", "")
        if not key.strip():
            return "this server needs an API key: send the header `Authorization: Bearer KEY`"
        given = key.strip().encode()
        # All keys are compared, each in constant time: the answer's timing says nothing about them.
        matches = [hmac.compare_digest(given, known) for known in self._keys]
        return None if any(matches) else "the API key is wrong"
