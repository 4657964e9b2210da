"""The last look at an answer to relaxed schemas: the whole documents go to a validator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from interlock.constraints.walk import walk
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.core.events import Event, TextDelta, ToolCallArguments, ToolCallStart, Validity
from interlock.errors import InterlockError

Validate = Callable[[Sequence[tuple[str, str]]], Awaitable[tuple[bool | None, ...]]]


class RelaxedAnswer:
    """Collects the documents of one answer. schemas: by the name of the tool, ``None`` for the answer's text."""

    def __init__(self, schemas: dict[str | None, str], validate: Validate) -> None:
        self._schemas = schemas
        self._validate = validate
        self._text: list[str] = []
        self._calls: list[tuple[str, list[str]]] = []

    def add(self, event: Event) -> None:
        """The next event of the answer."""
        match event:
            case TextDelta(text=text):
                self._text.append(text)
            case ToolCallStart(name=name):
                self._calls.append((name, []))
            case ToolCallArguments(index=index, text=text):
                self._calls[index][1].append(text)

    async def validity(self) -> Validity:
        """What the validator says, now that the answer has ended."""
        has_text = None in self._schemas and not self._calls
        pairs = [(self._schemas[None], "".join(self._text))] if has_text else []
        pairs += [(self._schemas.get(name, "true"), "".join(pieces)) for name, pieces in self._calls]
        try:
            found = await self._validate(pairs)
        except InterlockError:  # the answer is there, only nobody can judge it
            found = (None,) * len(pairs)
        split = int(has_text)
        return Validity(answer=found[:split], calls=found[split:])


def relaxed_schemas(spec: ConstraintSpec | None) -> dict[str | None, str]:
    """The schemas of ``spec`` that are relaxed, by tool."""
    nodes = walk(spec.root) if spec is not None else ()
    return {node.tool: node.schema for node in nodes if isinstance(node, JsonValue) and node.relaxed}
