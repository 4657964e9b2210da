"""API keys: ``Authorization: Bearer KEY`` or ``x-api-key: KEY``. Without configured keys every request passes.

Keys are given as they are or as their hashes (``settings.keys``); only hashes are kept. The admin API takes admin keys
alone, which are good for everything else too. Where there are none it is open, so ``launch`` serves it then to this
machine only; and a page of another site, which a browser on this machine may show, cannot reach it: its requests carry
that site's name as ``Host`` or ``Origin``.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from interlock.api.errors import error_response
from interlock.errors import InterlockError
from interlock.settings.keys import as_hash, hash_of

# probes of orchestrators and browsers' first requests carry no key
OPEN_PATHS = frozenset({"/health", "/ready", "/admin"})
ADMIN_FILES = "/admin/static/"
ADMIN_API = "/admin/api/"


class RequireKey:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, *, keys: Sequence[str], admin_keys: Sequence[str] = ()) -> None:
        self._app = app
        self._admin_keys = [as_hash(key) for key in admin_keys]
        self._keys = [as_hash(key) for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(scope["path"], Headers(scope=scope)) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await error_response(InterlockError("invalid_api_key", problem), scope["path"])(
                scope, receive, send
            )

    def _problem(self, path: str, headers: Headers) -> str | None:
        if path in OPEN_PATHS or path.startswith(ADMIN_FILES):
            return None
        if path.startswith(ADMIN_API):
            if self._admin_keys:
                return _compare(headers, self._admin_keys, "an admin key")
            return None if _is_local(headers) else "without an admin key only this machine's own pages get in"
        return _compare(headers, [*self._keys, *self._admin_keys], "an API key") if self._keys else None


def _compare(headers: Headers, known: Sequence[str], what: str) -> str | None:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        key = headers.get("x-api-key", "")
    if not key.strip():
        return f"this server needs {what}: send the header `Authorization: Bearer KEY`"
    given = hash_of(key.strip())
    # All keys are compared, each in constant time: the answer's timing says nothing about them.
    matches = [hmac.compare_digest(given, one) for one in known]
    return None if any(matches) else f"{what.replace('an', 'the', 1)} is wrong"


def _is_local(headers: Headers) -> bool:
    host = headers.get("host", "")
    origin = headers.get("origin")
    return is_loopback(urlsplit(f"//{host}").hostname or "") and (
        origin is None or urlsplit(origin).netloc == host
    )


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
