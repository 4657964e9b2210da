"""``--document URI=FILE``: a schema that ``$ref`` may name; nothing is ever fetched."""

from __future__ import annotations

import json
from pathlib import Path

import click


class DocumentType(click.ParamType[tuple[str, str]]):
    """``URI=FILE`` to (URI, JSON text)."""

    name = "URI=FILE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        uri, _, file = str(value).rpartition("=")
        if not uri:
            self.fail(f"{value!r} is not URI=FILE", param, ctx)
        try:
            text = Path(file).read_text("utf-8-sig")
            json.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            self.fail(f"{file}: {error}", param, ctx)
        return uri, text
