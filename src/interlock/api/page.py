"""``docs/api.md``, from the tables that the endpoints themselves read: ``python -m interlock.api.page``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from pydantic import BaseModel

from interlock.api.catalog import ENDPOINTS, EndpointEntry
from interlock.api.fields import RefusedFields

_INTRODUCTION = """\
# The API

This page is generated from the tables that the endpoints read (`python -m interlock.api.page`), and a test compares the
two. The same as an OpenAPI document: `GET /openapi.json`.

- **Read**: the fields below each endpoint. A value of the wrong type is a 400 that names the field.
- **Refused**: fields that would change the answer and that cannot be honoured are a 400 that names the field and says
  what to use instead. A value that asks for nothing passes.
- **Ignored**: every other field, also of nested objects. Their names are in the header `x-interlock-ignored` of the
  answer.
- `null` is the same as absent. Keys are sent as `Authorization: Bearer KEY` or `x-api-key: KEY`. Errors have the shape
  that clients of the path read; `errors.md` lists them.
- Interlock's own remarks on an answer are in its object `interlock`: `notes`, `tools` (that calls were held to the
  grammar, and why), `incomplete_tool_calls`, `enforced_by` (who makes masks, checks tokens and has guards, where that is
  another engine too: `distributed.md`); with `interlock: {"schema_mode": "relaxed"}` also `unenforced`, `valid` and
  `valid_tool_calls` (see `json-schema.md`). In a stream it is in the last event.
- `interlock: {"close_on_length": "answers" | "all" | "off"}` says what is brought to a legal end when the tokens run out
  (`json-schema.md`). The finish reason is `length` all the same.
- `/v1/check` takes `schema`, short for a `response_format` with it, `instances` to look for in the language of the
  answer, and `documents` (URI to schema) that references may name. Its answer has the report of `interlock check` for
  each schema in `schemas`, and in `enforced_by` who would make masks, check tokens and have guards.
- `structured_outputs.backend: "xgrammar"` (extra `interlock-llm[xgrammar]`; without it a 400) gives a grammar in EBNF or
  GBNF, or a structural tag with a `format`, to that engine as it came, and a note says so: schemas in it are then as
  loose as xgrammar's, and special tokens cannot be part of it. Only for turns that are nothing but the answer: no tools,
  thinking off, no family with markers around answers. The default, `llguidance`, is exact everywhere.
- Custom tools of `/v1/responses`: a grammar is enforced inside the native call, as the `pattern` of a string. Syntax `regex`
  is read as ECMAScript's. Syntax `lark`: rules, terminals, `%import common`, `%ignore`; every derivation counts (no lexer
  that prefers long terminals), and `.` is all but a line feed. A Lark grammar that nests (a rule leads back to itself in the
  middle) is held where the model's calls write arguments as JSON, and a 400 elsewhere; of terminals that overlap the longest
  is taken there.
- Deferred tools (`defer_loading`) are neither in the prompt nor in the grammar until a message loads them: a result of a
  tool with `tool_reference` parts (`tool_name`, on chat completions also `name`), or a developer message (an item
  `additional_tools` of `/v1/responses`) that declares one again. Kimi K3 is shown a loaded tool where it was loaded, so the
  prompt before it stays as it was; other models have it behind the others. A result that says nothing else becomes
  `Tools loaded: NAMES`. The server itself searches no tools: give the model one of yours that does.
- The group Admin is served to this machine, or with an admin key (`security.md`); elsewhere its paths are unknown.
- Parameters of sampling have the same names everywhere, on Ollama's endpoints in `options`: `sampling.md`.
- Responses are kept for `previous_response_id` within limits of age, number and size; `store: false` keeps nothing.
"""


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for group in dict.fromkeys(entry.group for entry in ENDPOINTS):
        parts.append(f"\n## {group}\n")
        parts += [section for entry in ENDPOINTS if entry.group == group for section in _sections(entry)]
    return "".join(parts)


def _sections(entry: EndpointEntry) -> Iterator[str]:
    yield f"\n### `{entry.method.upper()} {entry.path}`\n\n{entry.summary}."
    yield f" Streamed as `{entry.streams}`.\n" if entry.streams else "\n"
    if entry.body is None:
        return
    yield f"\nRead: {', '.join(_fields(entry.body))}.\n"
    rows = [row for path, table in _tables(entry) for row in _rows(path, table)]
    if rows:
        yield "\n| refused | unless it is | instead |\n|---|---|---|\n" + "".join(rows)


def _fields(body: type[BaseModel]) -> Iterator[str]:
    for name, info in body.model_fields.items():
        required = " (required)" if info.is_required() else ""
        yield f"`{info.alias or name}`{required}"


def _tables(entry: EndpointEntry) -> list[tuple[str, RefusedFields]]:
    return [("", entry.refused), *((f"{path}.", table) for path, table in entry.refused_inside.items())]


def _rows(path: str, table: RefusedFields) -> Iterator[str]:
    for name, rule in table.items():
        neutral = ", ".join(f"`{json.dumps(value)}`" for value in rule.neutral)
        yield f"| `{path}{name}` | {neutral} | {rule.hint or ''} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
