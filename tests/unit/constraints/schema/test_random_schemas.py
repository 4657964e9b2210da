"""Random schemas against python-jsonschema: what is accepted is valid, walks end in valid documents."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from interlock.constraints.schema import SchemaOptions

KEYS = ["a", "b", "c", "ab"]
PATTERNS = ["^a", "b$", "^[ab]$", "^(?!a)", "."]
LEAVES = "enum const minLength maxLength pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems required minProperties maxProperties dependentRequired".split()  # noqa: SIM905
NESTED = "allOf anyOf oneOf not if items prefixItems contains properties additionalProperties patternProperties propertyNames dependentSchemas unevaluatedProperties unevaluatedItems properties items".split()  # noqa: SIM905


class Maker:
    def __init__(self, seed: int) -> None:
        self.chooser = random.Random(seed)

    def scalar(self) -> Any:
        return self.chooser.choice([None, True, False, 0, 1, 2, 3, -1, 1.5, "", "a", "b", "ab", "abc"])

    def data(self, depth: int = 2) -> Any:
        kind = self.chooser.random()
        if depth == 0 or kind < 0.5:
            return self.scalar()
        if kind < 0.75:
            return [self.data(depth - 1) for _ in range(self.chooser.randint(0, 3))]
        return {self.chooser.choice(KEYS): self.data(depth - 1) for _ in range(self.chooser.randint(0, 3))}

    def schema(self, depth: int) -> Any:
        pick = self.chooser
        if pick.random() < 0.06:
            return pick.random() < 0.7
        out: dict[str, Any] = {}
        if pick.random() < 0.45:
            out["type"] = pick.choice(
                ["object", "array", "string", "number", "integer", ["string", "object"], ["array", "number"]]
            )
        for _ in range(pick.choice([1, 1, 2, 2, 3, 4])):
            name = pick.choice(LEAVES if depth == 0 else LEAVES + NESTED * 2)
            out[name] = self.value(name, depth)
        if "if" in out and depth:
            out["then"], out["else"] = self.schema(depth - 1), self.schema(depth - 1)
        if "contains" in out and pick.random() < 0.5:
            out["minContains"], out["maxContains"] = pick.randint(0, 2), pick.randint(0, 2)
        return out

    def value(self, name: str, depth: int) -> Any:
        pick = self.chooser
        if name == "enum":
            return [self.data(1) for _ in range(pick.randint(1, 4))]
        if name == "const":
            return self.data(1)
        if name.startswith(("min", "max")) and name not in ("minimum", "maximum"):
            return pick.randint(0, 3)
        if name == "pattern":
            return pick.choice(PATTERNS)
        if name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            return pick.choice([0, 1, 2, 3, -1, 1.5, 0.5])
        if name == "multipleOf":
            return pick.choice([1, 2, 0.5, 1.5])
        if name == "required":
            return pick.sample(KEYS, pick.randint(1, 2))
        if name == "dependentRequired":
            return {pick.choice(KEYS): pick.sample(KEYS, pick.randint(0, 2))}
        if name in ("allOf", "anyOf", "oneOf", "prefixItems"):
            return [self.schema(depth - 1) for _ in range(pick.randint(1, 3))]
        if name in ("properties", "dependentSchemas"):
            return {key: self.schema(depth - 1) for key in pick.sample(KEYS, pick.randint(1, 2))}
        if name == "patternProperties":
            return {key: self.schema(depth - 1) for key in pick.sample(PATTERNS, pick.randint(1, 2))}
        return self.schema(depth - 1)


def second_opinion(schema: Any, first: Any, documents: list[Any]) -> Any:
    """jsonschema-rs, ``None`` where it does not take the schema or thinks otherwise of ``documents``."""
    try:
        second = jsonschema_rs.Draft202012Validator(schema)
    except ValueError:
        return None
    agree = all(first.is_valid(document) == second.is_valid(document) for document in documents)
    return second if agree else None


@pytest.mark.parametrize("options", [
    SchemaOptions(open_objects=True, property_order="any"),
    SchemaOptions(open_objects=True),
    SchemaOptions(property_order="any"),
    SchemaOptions(),
])  # fmt: skip
def test_only_valid_documents_are_accepted_and_generated(options, language, refusal) -> None:
    maker = Maker(11)
    exact = options.open_objects and options.property_order == "any"
    missed = checked = 0
    for _ in range(110):
        schema = maker.schema(2)
        validator = jsonschema.Draft202012Validator(schema)
        documents = [maker.data() for _ in range(25)]
        second = second_opinion(schema, validator, documents)
        try:
            found = language(schema, options)
        except refusal as error:
            if "no document is valid" in str(error):
                assert not any(map(validator.is_valid, documents)), json.dumps(schema)
            continue
        for document in documents:
            valid, text = validator.is_valid(document), json.dumps(document, separators=(",", ":"))
            accepted = found.accepts(text)
            assert valid or not accepted, f"{json.dumps(schema)} accepts {text}"
            checked += valid
            missed += valid and not accepted
        for _ in range(2):
            generated = found.walk(maker.chooser)
            if generated is not None:
                assert validator.is_valid(json.loads(generated)), f"{json.dumps(schema)} generates {generated}"
                assert second is None or second.is_valid(json.loads(generated)), (
                    f"{json.dumps(schema)}: {generated}"
                )
    if exact:
        assert missed <= checked * 0.002, f"{missed} of {checked} valid documents were rejected"
