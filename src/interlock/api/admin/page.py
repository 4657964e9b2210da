"""``/admin``: the page, and its files. They hold nothing secret; what the page shows comes from the API, with its keys."""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter
from starlette.responses import Response

from interlock.errors import InterlockError

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def router() -> APIRouter:
    routes = APIRouter()
    files = {entry.name: entry.read_bytes() for entry in (resources.files(__package__) / "static").iterdir()}

    @routes.get("/admin")
    async def page() -> Response:
        return _file(files, "index.html")

    @routes.get("/admin/static/{name}")
    async def static(name: str) -> Response:
        return _file(files, name)

    return routes


def _file(files: dict[str, bytes], name: str) -> Response:
    if name not in files:
        raise InterlockError("not_found", f"there is no file {name[:200]}")
    return Response(
        files[name], media_type=f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8", headers=_HEADERS
    )
