"""The keyword table of ``docs/json-schema.md``, from the rows the compiler works by."""

from __future__ import annotations

from interlock.constraints.schema.dialects import Dialect
from interlock.constraints.schema.keywords import TABLE, Keyword
from interlock.constraints.schema.text.formats import PATTERNS

BEGIN, END = "<!-- generated table: begin -->", "<!-- generated table: end -->"

_NAMES = {
    Dialect.DRAFT4: "draft 4",
    Dialect.DRAFT6: "draft 6",
    Dialect.DRAFT7: "draft 7",
    Dialect.DRAFT2019: "2019-09",
    Dialect.DRAFT2020: "2020-12",
}


def table() -> str:
    """Markdown: one row for each keyword, then the formats."""
    rows = ["| keyword | dialects | held by | remarks |", "|---|---|---|---|"]
    rows += [f"| `{row.name}` | {_dialects(row)} | {row.holder} | {row.note} |" for row in TABLE]
    formats = ", ".join(f"`{name}`" for name in sorted(PATTERNS))
    return "\n".join([*rows, "", f"Formats that are enforced: {formats}."]) + "\n"


def with_table(page: str) -> str:
    """``page`` with the text between the marks replaced by the table."""
    return between(page, BEGIN, END, table())


def between(page: str, begin: str, end: str, text: str) -> str:
    """``page`` with ``text`` between the marks, which begin and end a line."""
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}\n{text}{end}{tail}"


def _dialects(row: Keyword) -> str:
    if row.since == Dialect.DRAFT4 and row.until == Dialect.DRAFT2020:
        return "all"
    if row.until == Dialect.DRAFT2020:
        return f"from {_NAMES[row.since]}"
    return _NAMES[row.since] if row.since == row.until else f"{_NAMES[row.since]} to {_NAMES[row.until]}"
