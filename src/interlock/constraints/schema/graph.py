"""Schemas by number. A *literal* is a number or its negative (the complement); a ``Value`` is a conjunction of
literals: what the algebra knows of an instance before it looks inside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from interlock.constraints.schema.dialects import VALIDATION_KEYWORDS, Dialect
from interlock.constraints.schema.keywords import BY_DIALECT
from interlock.constraints.schema.problems import RefusedError
from interlock.constraints.schema.resources import Library, Resource, escape

Value = frozenset[int]
ANYTHING: Final[Value] = frozenset()
NEVER: Final[Value] = frozenset({0})

_IN_PLACE = frozenset(
    [
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "dependentSchemas",
        "dependencies",
    ]
)
_DATA = frozenset({"const", "enum"})
_NO_MEANING = {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"}


def meet(left: Value, right: Value) -> Value:
    """Both."""
    if left <= right:
        return right
    if right <= left:
        return left
    joined = left | right
    if 0 in joined or any(-literal in joined for literal in right):
        return NEVER
    return joined


def meet_all(values: Iterable[Value]) -> Value:
    out = ANYTHING
    for value in values:
        out = meet(out, value)
    return out


@dataclass(slots=True, eq=False)  # not frozen: that takes five times as long to make
class Schema:
    """One subschema in its resource. scope: the resources entered on the way, for dynamic references; empty
    where no reference is dynamic. pointer: into the document, for reports. meant: the keywords that count."""

    number: int
    value: Any
    resource: Resource
    pointer: str
    scope: tuple[Resource, ...]
    meant: dict[str, Any]

    @property
    def dialect(self) -> Dialect:
        return self.resource.dialect

    def get(self, name: str) -> Any:
        """The keyword's value, ``None`` if absent or unknown to the dialect (``null`` is no keyword's value
        but ``const``'s, for which see ``has``)."""
        return self.meant.get(name)

    def has(self, name: str) -> bool:
        return name in self.meant

    @property
    def is_plain(self) -> bool:
        """No other schema applies to the same value: most schemas are so."""
        return self.meant.keys().isdisjoint(_IN_PLACE)


def _meant(value: Any, resource: Resource) -> dict[str, Any]:
    """The keywords of a schema that its dialect knows and that are in force."""
    if not isinstance(value, dict):
        return {}
    if "$ref" in value and resource.dialect.ref_hides_siblings:
        return {"$ref": value["$ref"]}
    known = BY_DIALECT[resource.dialect]
    out = (
        value if value.keys() <= known.keys() else {name: item for name, item in value.items() if name in known}
    )
    if not resource.validates:
        out = {name: item for name, item in out.items() if name not in VALIDATION_KEYWORDS}
    return out


class Graph:
    """All schemas met so far. Equal schemas get one number."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._schemas: list[Schema] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._structures: dict[int, int] = {}
        self._interned: dict[tuple[Any, ...], int] = {}
        self._placed: set[int] = set()  # structures whose meaning depends on where they stand
        self._literals: dict[int, Value] = {}
        self._references: dict[int, list[Schema]] = {}
        self._children: dict[tuple[int, int], Schema] = {}  # by identity of value and resource of the parent
        self._keep: list[Any] = []  # synthetic values stay alive: identities are keys
        root = library.root
        self.root = self._schema(root.root, root, "", (root,) if library.has_dynamic else ())

    def schema(self, literal: int) -> Schema:
        return self._schemas[abs(literal) - 1]

    def child(self, parent: Schema, value: Any, pointer: str) -> Schema:
        """The subschema ``value`` of ``parent``; ``pointer`` is the step to it."""
        if self.library.has_dynamic:
            return self._child(parent, value, pointer)
        key = (id(value), id(parent.resource))
        known = self._children.get(key)
        if known is None:
            known = self._children[key] = self._child(parent, value, pointer)
        return known

    def _child(self, parent: Schema, value: Any, pointer: str) -> Schema:
        resource = self.library.resource_of(value, parent.resource)
        return self._schema(value, resource, parent.pointer + pointer, self._enter(parent.scope, resource))

    def synthetic(self, like: Schema, value: Any) -> Schema:
        """A schema that stands in no document. It means what it says in draft 2020-12."""
        self._keep.append(value)
        resource = Resource(like.resource.uri, value, Dialect.DRAFT2020)
        return self._schema(value, resource, like.pointer, ())

    def variant(self, schema: Schema, value: dict[str, Any]) -> Schema:
        """``value`` in the place of ``schema``."""
        self._keep.append(value)
        return self._schema(value, schema.resource, schema.pointer, schema.scope)

    def children(self, parent: Schema, name: str) -> list[Schema]:
        """The subschemas of a keyword that holds a list of them."""
        value = parent.get(name)
        if not isinstance(value, list):
            return []
        return [self.child(parent, item, f"/{name}/{index}") for index, item in enumerate(value)]

    def named(self, parent: Schema, name: str) -> dict[str, Schema]:
        """The subschemas of a keyword that holds a map of them."""
        value = parent.get(name)
        if not isinstance(value, dict):
            return {}
        return {
            key: self.child(parent, item, f"/{name}/{escape(key)}")
            for key, item in value.items()
            if isinstance(item, (dict, bool))
        }

    def only(self, parent: Schema, name: str) -> Schema | None:
        """The subschema of a keyword that holds one."""
        value = parent.get(name)
        if not isinstance(value, (dict, bool)):
            return None
        return self.child(parent, value, f"/{name}")

    def references(self, schema: Schema) -> list[Schema]:
        """Where the references of ``schema`` lead."""
        known = self._references.get(schema.number)
        if known is None:
            known = self._references[schema.number] = [] if schema.is_plain else self._followed(schema)
        return known

    def _followed(self, schema: Schema) -> list[Schema]:
        out: list[Schema] = []
        for name in ("$ref", "$dynamicRef", "$recursiveRef"):
            ref = schema.get(name)
            if isinstance(ref, str):
                try:
                    out.append(self._follow(schema, name, ref))
                except RefusedError as refused:
                    raise refused.at(name, f"{schema.pointer}/{name}") from None
        return out

    def in_place(self, schema: Schema) -> list[Schema]:
        """The schemas that ``schema`` applies to the same value."""
        out = list(self.references(schema))
        for name in ("allOf", "anyOf", "oneOf"):
            out += self.children(schema, name)
        for name in ("if", "then", "else", "not"):
            child = self.only(schema, name)
            if child is not None:
                out.append(child)
        for name in ("dependentSchemas", "dependencies"):
            out += self.named(schema, name).values()
        return out

    def _follow(self, schema: Schema, name: str, ref: str) -> Schema:
        value, resource, pointer = self.library.resolve(ref, schema.resource)
        if name == "$recursiveRef" and resource.recursive:
            for outer in schema.scope:
                if outer.recursive:
                    value, resource, pointer = outer.root, outer, outer.pointer
                    break
        anchor = ref.rpartition("#")[2]
        if name == "$dynamicRef" and anchor in resource.dynamic and resource.anchors[anchor][0] is value:
            for outer in schema.scope:
                if anchor in outer.dynamic:
                    value, pointer = outer.anchors[anchor]
                    resource = self.library.resource_of(value, outer)
                    break
        return self._schema(value, resource, pointer, self._enter(schema.scope, resource))

    def _enter(self, scope: tuple[Resource, ...], resource: Resource) -> tuple[Resource, ...]:
        if not self.library.has_dynamic or resource in scope:
            return scope
        return (*scope, resource)

    def value(self, schema: Schema, *, positive: bool = True) -> Value:
        """The schema as a conjunction, with trivial wrappers removed."""
        if not positive:
            value = self.value(schema)
            if value == ANYTHING:
                return NEVER
            if value == NEVER:
                return ANYTHING
            return frozenset({-next(iter(value))}) if len(value) == 1 else frozenset({-schema.number})
        known = self._literals.get(schema.number)
        if known is None:
            self._literals[schema.number] = frozenset({schema.number})  # while it is being found out
            known = self._literals[schema.number] = self._simplify(schema)
        return known

    def _simplify(self, schema: Schema) -> Value:
        if isinstance(schema.value, bool):
            return ANYTHING if schema.value else NEVER
        names = [name for name in schema.meant if name not in _NO_MEANING and name not in ("definitions", "id")]
        meaningful = [name for name in names if name[0] != "$" or name.endswith("ef")]
        if not meaningful:
            return ANYTHING
        if meaningful in (["$ref"], ["$dynamicRef"], ["$recursiveRef"]):
            target = self.references(schema)[0]
            return frozenset({schema.number}) if target.number == schema.number else self.value(target)
        if meaningful == ["allOf"]:
            return meet_all(self.value(child) for child in self.children(schema, "allOf"))
        if meaningful == ["not"]:
            child = self.only(schema, "not")
            if child is not None:
                return self.value(child, positive=False)
        return frozenset({schema.number})

    def _schema(self, value: Any, resource: Resource, pointer: str, scope: tuple[Resource, ...]) -> Schema:
        key: tuple[Any, ...]
        if isinstance(value, bool):
            key = (value,)
        else:
            key = (self._digest(value, resource), resource.dialect, resource.validates, scope)
        number = self._numbers.get(key)
        if number is not None:
            return self._schemas[number - 1]
        schema = Schema(len(self._schemas) + 1, value, resource, pointer, scope, _meant(value, resource))
        self._schemas.append(schema)
        self._numbers[key] = schema.number
        return schema

    def _digest(self, value: Any, resource: Resource) -> tuple[int, int]:
        """Equal for schemas that mean the same because they say the same in the same place."""
        structure = self._structure(value, data=False)
        return structure, id(resource) if structure in self._placed else 0

    def _structure(self, value: Any, *, data: bool) -> int:
        """A number for the content of ``value``, without text that means nothing outside ``const`` and ``enum``."""
        if isinstance(value, dict):
            if not data and id(value) in self._structures:
                return self._structures[id(value)]
            parts: list[Any] = ["dict"]
            placed = False
            for name, item in value.items():
                if isinstance(item, str):
                    if not data and name in _NO_MEANING:
                        continue
                    parts += (name, item)
                elif isinstance(item, (dict, list)):
                    part = self._structure(item, data=data or name in _DATA)
                    parts += (name, part, None)
                    placed = placed or part in self._placed
                else:
                    parts += (name, type(item), str(item), None)
                placed = placed or name[:1] == "$" or name == "id"
            number = self._intern(tuple(parts))
            if not data:
                self._structures[id(value)] = number
                if placed:
                    self._placed.add(number)
            return number
        if isinstance(value, list):
            items = [item if isinstance(item, str) else (self._structure(item, data=data),) for item in value]
            number = self._intern(("list", *items))
            if self._placed and not self._placed.isdisjoint(
                item[0] for item in items if isinstance(item, tuple)
            ):
                self._placed.add(number)
            return number
        return self._intern((type(value), str(value)))

    def _intern(self, key: tuple[Any, ...]) -> int:
        return self._interned.setdefault(key, len(self._interned))
