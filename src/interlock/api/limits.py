"""Reading a request body within bounds: media type, size, time."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

from interlock.api.disconnect import ClientGone
from interlock.config import HttpConfig
from interlock.errors import InterlockError

LARGE_BODY_BYTES = 64 * 1024  # from here on reading a body is worth a thread


async def read_body(request: Request, limits: HttpConfig) -> bytes:
    """The whole body. Raises ``unsupported_media_type``, ``body_too_large`` (also for a chunked body without
    a length), ``request_timeout``, or ``ClientGone``."""
    _check_media_type(request)
    declared = request.headers.get("content-length", "")
    _check_size(int(declared) if declared.isdecimal() else 0, limits.max_body_bytes)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_timeout_s):
            async for chunk in request.stream():
                body += chunk
                _check_size(len(body), limits.max_body_bytes)
    except TimeoutError:
        raise InterlockError(
            "request_timeout", f"the body did not arrive within {limits.body_timeout_s:g} seconds"
        ) from None
    except ClientDisconnect:
        raise ClientGone from None
    return bytes(body)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise InterlockError("body_too_large", f"the body is larger than {limit} bytes")


def _check_media_type(request: Request) -> None:
    media_type, _, parameters = request.headers.get("content-type", "").lower().partition(";")
    media_type = media_type.strip()
    if media_type and media_type != "application/json" and not media_type.endswith("+json"):
        raise InterlockError(
            "unsupported_media_type",
            f"the body must be application/json, not {media_type[:100]}",
            hint="send the header `content-type: application/json`",
        )
    if "charset" in parameters and "utf-8" not in parameters:
        raise InterlockError("unsupported_media_type", "the body must be UTF-8")
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        raise InterlockError("unsupported_media_type", f"content-encoding {encoding[:100]} is not supported")
