"""Which sites' scripts may read answers in a browser: those that the operator names, else none. Never of the admin API."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_ADMIN = "/admin"


class CrossOrigin:
    """ASGI middleware. origins: ``https://site`` or ``https://site:port``, or ``*``. Keys are sent in headers, so no
    cookies or other credentials are allowed."""

    def __init__(self, app: ASGIApp, *, origins: Sequence[str]) -> None:
        self._app = app
        self._open = CORSMiddleware(
            app,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["x-request-id", "x-interlock-ignored", "retry-after", "x-should-retry"],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_admin = scope["type"] == "http" and scope["path"].startswith(_ADMIN)
        await (self._app if is_admin else self._open)(scope, receive, send)
