"""Object keywords to object shapes, and their negations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from interlock.constraints.schema.algebra import objects, presence
from interlock.constraints.schema.algebra.normalizer import Normalizer
from interlock.constraints.schema.algebra.objects import ALL_KEYS, NO_KEYS, Exists, Keys, Layer, ObjectShape
from interlock.constraints.schema.algebra.presence import Presence, Term
from interlock.constraints.schema.algebra.scalars import pattern_language
from interlock.constraints.schema.graph import ANYTHING, NEVER, Schema, Value, meet, meet_all
from interlock.constraints.schema.problems import RefusedError
from interlock.constraints.schema.resources import escape
from interlock.constraints.schema.text import lang
from interlock.constraints.schema.text.derive import is_empty
from interlock.constraints.schema.text.nodes import Lang, Words

MAX_TRACKED = 64  # a rule has so many bits
MAX_MULTIPLIED = 64  # more than these are kept as choices where that is possible


class ObjectNormalizer(Normalizer[ObjectShape]):
    kind = "object"
    keywords = frozenset(
        {"properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties",
         "maxProperties", "dependencies", "dependentRequired"}
    )  # fmt: skip
    unevaluated = "unevaluatedProperties"
    python_type = dict
    top = objects.TOP

    def meet(self, left: ObjectShape, right: ObjectShape) -> ObjectShape | None:
        shape = objects.both(left, right)
        if shape is None or max([len(value) for _, value in shape.names], default=0) < 2:
            return shape
        names = tuple([(name, self.simplified(value)) for name, value in shape.names])
        return shape if names == shape.names else replace(shape, names=names)

    def product(
        self, left: list[ObjectShape], right: list[ObjectShape], *, many: bool = False
    ) -> list[ObjectShape]:
        multiplied = 1 if many else MAX_MULTIPLIED
        if len(left) * len(right) <= multiplied or [self.top] in (left, right):
            return super().product(left, right)
        out: list[ObjectShape] = []
        for shape in left:
            ways = [way for other in right for way in objects.shown(other, shape)]
            if objects.choice(ways) is None:
                out += super().product([shape], right)
            elif (found := self._choose(shape, ways)) is not None:
                out.append(found)
        return self.union(out)

    def _choose(self, shape: ObjectShape, ways: list[ObjectShape]) -> ObjectShape | None:
        """``shape`` with those of ``ways`` as a choice that are possible there, ``None`` if none is."""
        possible: list[tuple[ObjectShape, ObjectShape]] = []
        for way in ways:
            self.budget.spend(4)
            met = self.meet(shape, way)
            if met == shape:
                return shape
            if met is not None and self._possible(self.suspects(met)):
                possible.append((way, met))
        if len(possible) < 2:
            return possible[0][1] if possible else None
        left = objects.choice(way for way, _ in possible)
        assert left is not None  # it is a part of a choice
        chosen = replace(shape, choices=shape.choices | {left})
        if chosen.num_tracked > MAX_TRACKED:
            raise RefusedError(
                f"too complex: more than {MAX_TRACKED} overlapping alternatives and keys that they speak of",
                too_complex=True,
            )
        return chosen

    def compact(self, shapes: Iterable[ObjectShape]) -> list[ObjectShape]:
        return objects.absorbed(objects.compact(shapes), self.budget)

    def clashes(self, left: ObjectShape, right: ObjectShape) -> Iterable[Value]:
        needed = left.presence.unit.need & right.presence.unit.need
        if not needed:
            return
        first = {name: value for name, value in left.names if name in needed}
        for name, value in right.names:
            if name in first:
                yield meet(first[name], value)

    def suspects(self, shape: ObjectShape) -> Iterable[Value]:
        return [value for name, value in shape.names if name in shape.presence.unit.need]

    def forget(self, shape: ObjectShape) -> ObjectShape:
        return shape if shape.evaluated == NO_KEYS else replace(shape, evaluated=NO_KEYS)

    def own(self, schema: Schema) -> ObjectShape | None:
        patterns = self._patterns(schema)
        layer = Layer(tuple((pattern, self.graph.value(child)) for pattern, child in patterns))
        names = []
        properties = self.graph.named(schema, "properties")
        for name, child in properties.items():
            value = self.graph.value(child)
            if patterns:
                value = meet_all([value, *([layer.value(name)] if _any_match(layer, name) else [])])
            names.append((name, value))
        rest = self._additional(schema)
        layers = [Layer(layer.patterns, ANYTHING if rest is None else rest, lists=bool(patterns))]
        key_names = self._key_names(schema)
        if key_names is not None:
            layers.append(Layer(((key_names, ANYTHING),), NEVER))
        held = self._presence(schema)
        if held is None:
            return None
        shape = ObjectShape(
            names=tuple(names),
            layers=objects.merged([found for found in layers if found != Layer()]),
            presence=held,
            evaluated=self._evaluated(schema, properties, patterns),
            declares=bool(properties) or bool(patterns),
            speaks=schema.has("additionalProperties"),
        )
        if key_names is not None:  # it binds declared names too
            kept = [(name, value if objects.matches(key_names, name) else NEVER) for name, value in names]
            shape = replace(shape, names=tuple(kept))
            if any(value == NEVER and name in held.unit.need for name, value in kept):
                return None
        return shape

    def _evaluated(
        self, schema: Schema, properties: dict[str, Schema], patterns: list[tuple[Lang, Schema]]
    ) -> Keys:
        if not self._tracks():
            return NO_KEYS
        if schema.has("additionalProperties"):
            return ALL_KEYS
        return Keys(frozenset(properties), frozenset(pattern for pattern, _ in patterns))

    def _patterns(self, schema: Schema) -> list[tuple[Lang, Schema]]:
        out = []
        for text, child in self.graph.named(schema, "patternProperties").items():
            pointer = f"{schema.pointer}/patternProperties/{escape(text)}"
            out.append((pattern_language(text, pointer, "patternProperties"), child))
        return out

    def _additional(self, schema: Schema) -> Value | None:
        child = self.graph.only(schema, "additionalProperties")
        return None if child is None else self.graph.value(child)

    def _key_names(self, schema: Schema) -> Lang | None:
        child = self.graph.only(schema, "propertyNames")
        if child is None:
            return None
        found = self.scalars.of(child).strings
        return None if found == lang.ANY else found

    def _dependent_names(self, schema: Schema) -> dict[str, list[str]]:
        out: dict[str, list[str]] = {}
        for keyword in ("dependencies", "dependentRequired"):
            value = schema.get(keyword)
            if isinstance(value, dict):
                for name, needed in value.items():
                    if isinstance(needed, str):
                        needed = [needed]  # noqa: PLW2901  # draft 3 wrote one name without brackets
                    if isinstance(needed, list):
                        out.setdefault(name, []).extend(needed)
        return out

    def _presence(self, schema: Schema) -> Presence | None:
        low, high = schema.get("minProperties"), schema.get("maxProperties")
        held: Presence | None = Presence(
            Term(
                frozenset(_names(schema.get("required"))),
                frozenset(),
                int(low or 0),
                None if high is None else int(high),
            )
        )
        assert held is not None
        held = presence.meet(held, presence.FREE) if held.unit.consistent else None
        for name, needed in self._dependent_names(schema).items():
            rule = presence.any_of([Term(forbid=frozenset({name})), Term(need=frozenset({name, *needed}))])
            if held is None or rule is None:
                return None
            held = presence.meet(held, rule)
        return held

    def dependents(self, schema: Schema) -> list[tuple[ObjectShape, ObjectShape, Schema]]:
        out = []
        for keyword in ("dependencies", "dependentSchemas"):
            for name, child in self.graph.named(schema, keyword).items():
                has = ObjectShape(presence=presence.need([name]))
                out.append((has, ObjectShape(presence=presence.forbid([name])), child))
        return out

    def own_negative(self, schema: Schema) -> list[ObjectShape]:
        out = []
        patterns = self._patterns(schema)
        properties = self.graph.named(schema, "properties")
        required = dict.fromkeys(_names(schema.get("required")))
        for name, child in properties.items():
            value = self.graph.value(child, positive=False)
            if value == NEVER:
                continue
            if name in required:  # a required one is missing or wrong
                del required[name]
                out.append(ObjectShape(names=((name, value),)))
            else:
                out.append(ObjectShape(names=((name, value),), presence=presence.need([name])))
        for pattern, child in patterns:
            out += self._some(pattern, self.graph.value(child, positive=False))
        additional = self.graph.only(schema, "additionalProperties")
        if additional is not None:
            known = lang.alt([lang.words(properties), *(pattern for pattern, _ in patterns)])
            out += self._some(lang.negate(known), self.graph.value(additional, positive=False))
        key_names = self._key_names(schema)
        if key_names is not None:
            out += self._some(lang.negate(key_names), ANYTHING)
        broken = presence.any_of(self._broken_presence(schema, required))
        if broken is not None:
            out.append(ObjectShape(presence=broken))
        return out

    def _some(self, keys: Lang, value: Value) -> list[ObjectShape]:
        """Objects with some key of ``keys`` and a value of that kind."""
        if value == NEVER or is_empty(keys):
            return []
        if isinstance(keys, Words):
            return [
                ObjectShape(names=((name, value),), presence=presence.need([name]))
                for name in sorted(keys.words)
            ]
        if value == ANYTHING and keys == lang.ANY:
            return [ObjectShape(presence=presence.count(1, None))]
        return [ObjectShape(exists=frozenset({Exists(keys, value)}))]

    def _broken_presence(self, schema: Schema, required: Iterable[str]) -> list[Term]:
        out = [Term(forbid=frozenset({name})) for name in required]
        for name, needed in self._dependent_names(schema).items():
            out += [
                Term(need=frozenset({name}), forbid=frozenset({other})) for other in needed if other != name
            ]
        low, high = schema.get("minProperties"), schema.get("maxProperties")
        if low:
            out.append(Term(high=int(low) - 1))
        if high is not None:
            out.append(Term(low=int(high) + 1))
        return out

    def close(self, shape: ObjectShape, schema: Schema) -> ObjectShape | None:
        child = self.graph.only(schema, self.unevaluated)
        if child is None or shape.evaluated.everything:
            return shape
        known = tuple((pattern, ANYTHING) for pattern in _evaluated_patterns(shape.evaluated))
        layer = Layer(known, self.graph.value(child))
        closed = objects.both(shape, ObjectShape(layers=frozenset({layer}), speaks=True))
        return None if closed is None else replace(closed, evaluated=ALL_KEYS, speaks=True)

    def breach(self, shape: ObjectShape, schema: Schema) -> list[ObjectShape]:
        child = self.graph.only(schema, self.unevaluated)
        if child is None or shape.evaluated.everything:
            return []
        others = lang.negate(shape.evaluated.language())
        found = self._some(others, self.graph.value(child, positive=False))
        return [both for item in found if (both := objects.both(shape, item)) is not None]


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _any_match(layer: Layer, name: str) -> bool:
    return any(objects.matches(pattern, name) for pattern, _ in layer.patterns)


def _evaluated_patterns(keys: Keys) -> list[Lang]:
    named = [lang.words(keys.names)] if keys.names else []
    return [*named, *sorted(keys.patterns, key=repr)]
