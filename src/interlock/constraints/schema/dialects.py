"""The dialects of JSON Schema that differ in meaning."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class Dialect(IntEnum):
    DRAFT4 = 4
    DRAFT6 = 6
    DRAFT7 = 7
    DRAFT2019 = 8
    DRAFT2020 = 9

    @property
    def ref_hides_siblings(self) -> bool:
        return self <= Dialect.DRAFT7

    @property
    def id_keyword(self) -> str:
        return "id" if self == Dialect.DRAFT4 else "$id"


_BY_URI = {
    "json-schema.org/draft-04/schema": Dialect.DRAFT4,
    "json-schema.org/draft-06/schema": Dialect.DRAFT6,
    "json-schema.org/draft-07/schema": Dialect.DRAFT7,
    "json-schema.org/draft/2019-09/schema": Dialect.DRAFT2019,
    "json-schema.org/draft/2020-12/schema": Dialect.DRAFT2020,
    "json-schema.org/schema": Dialect.DRAFT2020,
}

VALIDATION_VOCABULARIES = (
    "https://json-schema.org/draft/2019-09/vocab/validation",
    "https://json-schema.org/draft/2020-12/vocab/validation",
)
VALIDATION_KEYWORDS = frozenset(
    [
        "type",
        "enum",
        "const",
        "multipleOf",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "maxContains",
        "minContains",
        "maxProperties",
        "minProperties",
        "required",
        "dependentRequired",
    ]
)


def from_uri(uri: Any) -> Dialect | None:
    """The dialect that a ``$schema`` names, ``None`` if it is not one of ours."""
    if not isinstance(uri, str):
        return None
    bare = uri.removeprefix("https://").removeprefix("http://").rstrip("#").rstrip("/")
    return _BY_URI.get(bare)
