"""Schema documents, their embedded resources and anchors; where a reference leads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from interlock.constraints.schema.dialects import (
    VALIDATION_VOCABULARIES,
    Dialect,
    from_uri,
)
from interlock.constraints.schema.keywords import HOLDS_SCHEMAS, keyword
from interlock.constraints.schema.problems import RefusedError

MAX_DEPTH = 200
MAX_SUBSCHEMAS = 250_000

_PLACING = frozenset({"id", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})
"""Keywords that say which resource a schema is, or name a place in one."""


@dataclass(slots=True, eq=False)
class Resource:
    """One schema resource: a document, or a part of one with an ``$id`` of its own.

    pointer: of ``root`` in its document. anchors: name to (schema, pointer). dynamic: names among them.
    recursive: draft 2019-09's ``$recursiveAnchor``. validates: the validation vocabulary is on.
    """

    uri: str
    root: Any
    dialect: Dialect
    pointer: str = ""
    anchors: dict[str, tuple[Any, str]] = field(default_factory=dict)
    dynamic: set[str] = field(default_factory=set)
    recursive: bool = False
    validates: bool = True


def escape(name: str) -> str:
    """One step of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1") if "/" in name or "~" in name else name


def subschemas(value: dict[str, Any], dialect: Dialect) -> Iterator[tuple[str, str, Any]]:
    """Direct subschemas: (keyword, pointer step, schema). Values of a wrong kind are left out."""
    known = HOLDS_SCHEMAS[dialect]
    for name, child in value.items():
        kind = known.get(name)
        if kind is None:
            continue
        if kind == "schema" or (kind == "schema or schemas" and not isinstance(child, list)):
            yield name, f"/{name}", child
        elif kind in ("schemas", "schema or schemas") and isinstance(child, list):
            for index, item in enumerate(child):
                yield name, f"/{name}/{index}", item
        elif kind in ("schema map", "pattern map", "schema or names map") and isinstance(child, dict):
            for key, item in child.items():
                if not isinstance(item, list):
                    yield name, f"/{name}/{escape(key)}", item


class Library:
    """All resources that references may reach."""

    def __init__(self, root: Any, documents: Mapping[str, Any]) -> None:
        self._nodes_left = MAX_SUBSCHEMAS
        self._documents = documents
        self._by_uri: dict[str, Resource] = {}
        self._owner: dict[int, Resource] = {}  # by identity of the schema object
        self.has_dynamic = False
        self.has_unevaluated = False
        self.root = self._add_document("", root, default=Dialect.DRAFT2020)

    def resource_of(self, schema: Any, parent: Resource) -> Resource:
        """The resource that ``schema``, a subschema in ``parent``, belongs to."""
        if not isinstance(schema, dict):
            return parent
        return self._owner.get(id(schema), parent)

    def resolve(self, ref: str, base: Resource) -> tuple[Any, Resource, str]:
        """Schema, resource and pointer that ``ref`` names. Raises ``RefusedError``."""
        if ref[:1] == "#":
            target, fragment = "", ref[1:]
        else:
            target, fragment = urldefrag(urljoin(base.uri, ref) if base.uri else ref)
        resource = base if target in ("", base.uri) else self._find(target, base.dialect)
        fragment = unquote(fragment)
        if fragment == "":
            return resource.root, resource, resource.pointer
        if not fragment.startswith("/"):
            if fragment not in resource.anchors:
                raise RefusedError(f"'{ref}' names no schema: there is no anchor '{fragment}'")
            schema, pointer = resource.anchors[fragment]
            return schema, self.resource_of(schema, resource), pointer
        return self._follow(ref, fragment, resource)

    def _follow(self, ref: str, fragment: str, resource: Resource) -> tuple[Any, Resource, str]:
        value: Any = resource.root
        for step in fragment[1:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and key.isdigit() and int(key) < len(value):
                value = value[int(key)]
            elif isinstance(value, dict) and key in value:
                value = value[key]
            else:
                raise RefusedError(f"'{ref}' names no schema: there is no '{key}'")
            resource = self.resource_of(value, resource)
        if not isinstance(value, (dict, bool)):
            raise RefusedError(f"'{ref}' does not name a schema")
        return value, resource, resource.pointer + fragment

    def _find(self, uri: str, dialect: Dialect) -> Resource:
        known = self._by_uri.get(uri)
        if known is not None:
            return known
        document = self._documents.get(uri)
        if document is None:
            document = _metaschemas().get(uri.rstrip("#"))
        if document is None:
            raise RefusedError(f"the remote schema '{uri}' was not given, and nothing is fetched")
        return self._add_document(uri, document, default=dialect)

    def _add_document(self, uri: str, root: Any, default: Dialect) -> Resource:
        resource = self._open(uri, root, "", default)
        self._by_uri.setdefault(uri, resource)
        self._index(root, resource, "", 0)
        return resource

    def _open(self, uri: str, root: Any, pointer: str, default: Dialect) -> Resource:
        """A new resource, named by its ``$id`` if it has one."""
        dialect, validates = self._dialect(root, default)
        resource = Resource(uri, root, dialect, pointer, validates=validates)
        if isinstance(root, dict):
            name = root.get(dialect.id_keyword)
            if isinstance(name, str) and not name.startswith("#") and not _hidden(root, dialect):
                resource.uri = urldefrag(urljoin(uri, name))[0]
            resource.recursive = root.get("$recursiveAnchor") is True
            self._owner[id(root)] = resource
        self._by_uri.setdefault(resource.uri, resource)
        return resource

    def _dialect(self, root: Any, default: Dialect) -> tuple[Dialect, bool]:
        uri = root.get("$schema") if isinstance(root, dict) else None
        dialect = from_uri(uri)
        if dialect is not None:
            return dialect, True
        meta = self._documents.get(uri.rstrip("#")) if isinstance(uri, str) else None
        if isinstance(meta, dict):
            vocabularies = meta.get("$vocabulary")
            on = not isinstance(vocabularies, dict) or any(
                name in vocabularies for name in VALIDATION_VOCABULARIES
            )
            return from_uri(meta.get("$schema")) or default, on
        return default, True

    def _index(self, schema: Any, resource: Resource, pointer: str, depth: int) -> None:
        """Find the ids and anchors below ``schema``."""
        if not isinstance(schema, dict):
            return
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise RefusedError(
                f"the schema has more than {MAX_SUBSCHEMAS} subschemas", pointer=pointer, too_complex=True
            )
        if depth > MAX_DEPTH:
            raise RefusedError(
                f"the schema is nested deeper than {MAX_DEPTH} levels", pointer=pointer, too_complex=True
            )
        if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
            self.has_unevaluated = True
        if not _PLACING.isdisjoint(schema):
            self._index_anchors(schema, resource, pointer)
        for _, step, child in subschemas(schema, resource.dialect):
            if isinstance(child, dict):
                inner = (
                    resource if _PLACING.isdisjoint(child) else self._owner_of(child, resource, pointer + step)
                )
                self._index(child, inner, pointer + step, depth + 1)

    def _owner_of(self, child: dict[str, Any], resource: Resource, pointer: str) -> Resource:
        """The resource of a subschema: one of its own if it has an id."""
        name = child.get(resource.dialect.id_keyword)
        if isinstance(name, str) and not name.startswith("#") and not _hidden(child, resource.dialect):
            return self._open(resource.uri, child, pointer, resource.dialect)
        return resource

    def _index_anchors(self, schema: dict[str, Any], resource: Resource, pointer: str) -> None:
        if resource.dialect <= Dialect.DRAFT7:
            name = schema.get(resource.dialect.id_keyword)
            if isinstance(name, str) and name.startswith("#") and not _hidden(schema, resource.dialect):
                resource.anchors.setdefault(name[1:], (schema, pointer))
            return
        for key in ("$anchor", "$dynamicAnchor"):
            name = schema.get(key)
            if isinstance(name, str) and keyword(key, resource.dialect):
                resource.anchors.setdefault(name, (schema, pointer))
                if key == "$dynamicAnchor":
                    resource.dynamic.add(name)
                    self.has_dynamic = True
        if resource.dialect == Dialect.DRAFT2019 and schema.get("$recursiveAnchor") is True:
            self.has_dynamic = True


def _hidden(schema: dict[str, Any], dialect: Dialect) -> bool:
    return dialect.ref_hides_siblings and "$ref" in schema


@cache
def _metaschemas() -> dict[str, Any]:
    """The published metaschemas, which come with the jsonschema package."""
    import jsonschema_specifications  # type: ignore[import-untyped]

    registry = jsonschema_specifications.REGISTRY
    return {uri.rstrip("#"): registry[uri].contents for uri in registry}
