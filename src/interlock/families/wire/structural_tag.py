"""Structural tags, as xgrammar and vLLM write them, to nodes of a constraint: the schemas in them are exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from interlock.core.constraint import (
    Alternative,
    FreeText,
    Grammar,
    JsonValue,
    Marker,
    Node,
    Regex,
    Repeat,
)
from interlock.errors import InterlockError
from interlock.families.wire import json_text
from interlock.families.wire.trees import alternative, sequence

MakeValue = Callable[[str, str], JsonValue]
"""A value from the text of a schema and where it came from."""


def structural_tag(text: str, param: str, make_value: MakeValue) -> Node:
    """The node of ``{"format": ...}`` or of the older ``{"structures": [...], "triggers": [...]}``.

    Raises ``InterlockError`` with the place in ``param`` for what is malformed, and for what tokens by id, budgets and
    other argument styles than JSON would need.
    """
    tag = json_text.loads(text)
    reader = _Reader(make_value)
    if not isinstance(tag, dict):
        raise _wrong("a structural tag is an object", param)
    if "format" in tag:
        return reader.node(tag["format"], f"{param}.format")
    structures = _list(tag, "structures", param)
    tags = [
        reader.tag({**_object(item, f"{param}.structures[{at}]"), "content": None}, f"{param}.structures[{at}]")
        for at, item in enumerate(structures)
    ]
    return reader.triggered(_strings(tag, "triggers", param), tags, (), first=False, once=False)


class _Reader:
    def __init__(self, make_value: MakeValue) -> None:
        self._make_value = make_value

    def node(self, data: Any, at: str) -> Node:
        """One format. Free text knows what ends it from what follows it."""
        fields = _object(data, at)
        kind = fields.get("type")
        read = {
            "const_string": self._const,
            "json_schema": self._json_schema,
            "any_text": self._any_text,
            "regex": self._regex,
            "grammar": self._grammar,
            "sequence": self._sequence,
            "or": self._or,
            "tag": self.tag,
            "triggered_tags": self._triggered_tags,
            "tags_with_separator": self._separated,
            "optional": self._repeated,
            "plus": self._repeated,
            "star": self._repeated,
            "repeat": self._repeated,
            "dispatch": self._dispatch,
        }.get(kind if isinstance(kind, str) else "")
        if read is None:
            raise InterlockError(
                "unsupported_parameter",
                f"{at}.type {kind!r} of a structural tag is not supported",
                param=f"{at}.type",
                hint="spell tokens as text; argument styles come with tools",
            )
        return read(fields, at)

    def _const(self, fields: Mapping[str, Any], at: str) -> Node:
        return Marker(_string(fields, "value", at))

    def _json_schema(self, fields: Mapping[str, Any], at: str) -> Node:
        _only(fields, at, style="json", excludes=[], max_whitespace_cnt=None)
        return self._value(fields, "json_schema", at, any_order=fields.get("any_order") is True)

    def _value(self, fields: Mapping[str, Any], name: str, at: str, *, any_order: bool = False) -> JsonValue:
        schema = fields.get(name)
        if not isinstance(schema, dict | bool):
            raise _wrong(f"{at}.{name} must be a JSON Schema", f"{at}.{name}")
        value = self._make_value(json_text.dumps(schema), f"{at}.{name}")
        return replace(value, property_order="any") if any_order else value

    def _any_text(self, fields: Mapping[str, Any], at: str) -> Node:
        _only(fields, at, max_tokens=None, max_chars=None)
        return FreeText(_strings(fields, "excludes", at, default=[]))

    def _regex(self, fields: Mapping[str, Any], at: str) -> Node:
        return Regex(_string(fields, "pattern", at), origin=f"{at}.pattern")

    def _grammar(self, fields: Mapping[str, Any], at: str) -> Node:
        syntax = fields.get("syntax", "ebnf")
        if syntax not in ("ebnf", "lark"):
            raise _wrong(f"{at}.syntax must be ebnf or lark", f"{at}.syntax")
        return Grammar(_string(fields, "grammar", at), syntax, origin=f"{at}.grammar")

    def _sequence(self, fields: Mapping[str, Any], at: str) -> Node:
        return sequence(*self._nodes(fields, "elements", at))

    def _or(self, fields: Mapping[str, Any], at: str) -> Node:
        return alternative(self._nodes(fields, "elements", at))

    def tag(self, data: Any, at: str) -> Node:
        """``begin``, content, and one of the ends. Older tags have a ``schema`` as their content."""
        fields = _object(data, at)
        old = fields.get("content") is None and "schema" in fields
        content = (
            self._value(fields, "schema", at) if old else self.node(fields.get("content"), f"{at}.content")
        )
        end = fields.get("end")
        ends = (end,) if isinstance(end, str) else _strings(fields, "end", at)
        if isinstance(content, FreeText):
            content = FreeText((*content.excludes, *filter(None, ends)))
        return sequence(
            Marker(_string(fields, "begin", at)), content, alternative([Marker(text) for text in ends])
        )

    def _triggered_tags(self, fields: Mapping[str, Any], at: str) -> Node:
        triggers = _strings(fields, "triggers", at)
        tags = [self.tag(item, f"{at}.tags[{index}]") for index, item in enumerate(_list(fields, "tags", at))]
        for index, item in enumerate(fields["tags"]):
            if not item["begin"].startswith(triggers):
                raise _wrong("no trigger begins this tag", f"{at}.tags[{index}].begin")
        return self.triggered(
            triggers,
            tags,
            _strings(fields, "excludes", at, default=[]),
            first=fields.get("at_least_one") is True,
            once=fields.get("stop_after_first") is True,
        )

    def triggered(
        self, triggers: tuple[str, ...], tags: list[Node], excludes: tuple[str, ...], *, first: bool, once: bool
    ) -> Node:
        """Text in which a trigger must go on as one of ``tags``. first: it begins with a tag. once: it ends with the
        first one."""
        text, tag = FreeText((*triggers, *excludes)), alternative(tags)
        if once:
            return tag if first else Alternative((text, sequence(text, tag)))
        more = sequence(Repeat(sequence(text, tag)), text)
        return sequence(tag, more) if first else more

    def _separated(self, fields: Mapping[str, Any], at: str) -> Node:
        tags = [self.tag(item, f"{at}.tags[{index}]") for index, item in enumerate(_list(fields, "tags", at))]
        separator = _string(fields, "separator", at)
        return Repeat(
            alternative(tags),
            int(fields.get("at_least_one") is True),
            1 if fields.get("stop_after_first") is True else None,
            Marker(separator) if separator else None,
        )

    def _repeated(self, fields: Mapping[str, Any], at: str) -> Node:
        low, high = {"optional": (0, 1), "plus": (1, -1), "star": (0, -1)}.get(
            fields["type"], (fields.get("min"), fields.get("max"))
        )
        for name, number in (("min", low), ("max", high)):
            if not isinstance(number, int) or isinstance(number, bool) or not -1 <= number <= _MOST:
                raise _wrong(f"{at}.{name} must be an integer up to {_MOST}", f"{at}.{name}")
        assert isinstance(low, int)
        assert isinstance(high, int)
        if low < 0 or -1 < high < low:
            raise _wrong(f"{at}.min and {at}.max exclude each other", f"{at}.min")
        return Repeat(self.node(fields.get("content"), f"{at}.content"), low, None if high < 0 else high)

    def _dispatch(self, fields: Mapping[str, Any], at: str) -> Node:
        rules, patterns = [], []
        for index, rule in enumerate(_list(fields, "rules", at)):
            place = f"{at}.rules[{index}]"
            if not isinstance(rule, list) or len(rule) != 2 or not isinstance(rule[0], str) or not rule[0]:
                raise _wrong("a rule is a text and a format", place)
            patterns.append(rule[0])
            rules.append(sequence(Marker(rule[0]), self.node(rule[1], f"{place}[1]")))
        excludes = _strings(fields, "excludes", at, default=[])
        return self.triggered(tuple(patterns), rules, excludes, first=False, once=fields.get("loop") is False)

    def _nodes(self, fields: Mapping[str, Any], name: str, at: str) -> list[Node]:
        return [self.node(item, f"{at}.{name}[{index}]") for index, item in enumerate(_list(fields, name, at))]


_MOST = 10_000


def _object(data: Any, at: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise _wrong(f"{at} must be an object", at)
    return data


def _list(fields: Mapping[str, Any], name: str, at: str) -> list[Any]:
    found = fields.get(name)
    if not isinstance(found, list) or not found:
        raise _wrong(f"{at}.{name} must be a list, not empty", f"{at}.{name}")
    return found


def _string(fields: Mapping[str, Any], name: str, at: str) -> str:
    found = fields.get(name)
    if not isinstance(found, str):
        raise _wrong(f"{at}.{name} must be a string", f"{at}.{name}")
    return found


def _strings(
    fields: Mapping[str, Any], name: str, at: str, default: list[str] | None = None
) -> tuple[str, ...]:
    found = fields.get(name, default)
    if found == default == []:
        return ()
    if not isinstance(found, list) or not found or not all(isinstance(item, str) and item for item in found):
        raise _wrong(f"{at}.{name} must be a list of texts, none of them empty", f"{at}.{name}")
    return tuple(found)


def _only(fields: Mapping[str, Any], at: str, **allowed: Any) -> None:
    """Refuse what would change the language and is not supported."""
    for name, value in allowed.items():
        if fields.get(name, value) not in (value, None):
            raise InterlockError(
                "unsupported_parameter",
                f"{at}.{name} of a structural tag is not supported",
                param=f"{at}.{name}",
            )


def _wrong(message: str, param: str) -> InterlockError:
    return InterlockError("invalid_value", message, param=param)
