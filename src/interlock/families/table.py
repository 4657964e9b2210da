"""The families as rows, for people: ``interlock formats`` and the page in the docs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.families.catalog import FAMILIES
from interlock.families.differences import DIFFERENCES, RESPELLINGS, Difference, Respelling
from interlock.families.wire.spell import spell_calls

_BAR = "\\|"
_CALL = ("get_weather", {"city": "Oslo", "days": 3})


def family_rows() -> list[dict[str, Any]]:
    """One row a family: name, title, other names, a call, thinking, and where tools are told."""
    return [
        {
            "name": family.name,
            "title": family.title,
            "aliases": list(family.aliases),
            "call": spell_calls(family.tool_calls, [_CALL]),
            "reasoning": f"{family.reasoning.open}..{family.reasoning.close}" if family.reasoning else None,
            "tools_in_prompt": "chat template" if family.tool_prompt is None else "system prompt",
        }
        for family in FAMILIES
    ]


def families_page() -> str:
    """``docs/families.md``."""
    lines = [
        "# Model families",
        "",
        "Each family is one file in `src/interlock/families`. From it come the grammar that holds calls to their",
        "schemas, the parser, and the form of earlier turns in prompts. A model's family is chosen at load by what its",
        "chat template writes for a probe call (`interlock formats --model MODEL` shows it), or by `--family`.",
        "",
        "This page is written by `python -m interlock.families.table`; a test compares it with the declarations.",
        "",
        "| family | models | other names | a call | thinking |",
        "|---|---|---|---|---|",
    ]
    for row in family_rows():
        names = ", ".join(f"`{name}`" for name in row["aliases"])
        cells = (f"`{row['name']}`", row["title"], names, _code(row["call"]), _code(row["reasoning"] or ""))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_NOTES, *_differences(), ""])


def _differences() -> list[str]:
    """What the docs say of xgrammar's tags."""
    lines: list[str] = []
    tables: list[tuple[str, Sequence[Difference | Respelling]]] = [
        ("The tag allows also", [kind for kind in DIFFERENCES if kind.by == "tag"]),
        ("The grammar here allows also", [kind for kind in DIFFERENCES if kind.by == "us"]),
        ("Written differently", RESPELLINGS),
    ]
    for title, kinds in tables:
        lines += ["", f"| {title} | families | why |", "|---|---|---|"]
        for kind in kinds:
            names = ", ".join(f"`{name}`" for name in kind.families)
            lines.append(f"| {kind.what.replace('|', _BAR)} | {names} | {kind.why} |")
    return lines


_NOTES = (
    "## Rules that hold for all",
    "",
    "- A marker that is a token of the vocabulary is recognised by its id; the same characters spelt with ordinary",
    "  tokens are text. Missing tokens are reported at load, and matched as text.",
    "- Text inside thinking never opens a call, unless the family says that a call ends thinking (DeepSeek, Kimi).",
    "- A parameter written as raw text is read by the types its schema allows: `string` alone is the text itself,",
    "  character for character; without `string` it is JSON (or Python's `None`, `True`, `False`); with both, text that",
    "  is JSON of one of the other types is that value. Text that fits none stays a string, and so does not validate.",
    "- In a parameter that is an object or a list, a closing tag inside a JSON string is text.",
    "- Raw text cannot hold its own closing tag. A constrained answer never contains it; an earlier turn that does is",
    "  refused with 400, unless the tag is a token, which text never becomes.",
    "- MiniMax M3: where a value may be a string or an object, only strings and scalars are generated, and of objects and",
    "  arrays only objects: an empty tag must read back as one thing.",
    "",
    "## Models without a chat template",
    "",
    "DeepSeek V3.2, V4 and V4.1, Kimi K3 and gpt-oss may be published without one, their prompts being made by code. These",
    "families bring a template of their own, used where the model has none and its architecture names the family. It gives",
    "what the model's template gives wherever there is one to compare (`tests/unit/families/test_own_templates.py`), and",
    "more: gpt-oss is told of system messages that are not the first.",
    "",
    "## Not declared",
    "",
    "- Inkling: a call is a message of its own between `<|message_model|>` and `<|end_message|>`, as JSON or as text. There was",
    "  neither a template nor a recorded answer to check a declaration against.",
    "- Functionary 3.2: the prompt ends in `>>>`, and the first line of what follows is a tool's name or `all`: a call has no",
    "  marker of its own. Command R+ (2024) writes calls as indented JSON in a Markdown block, and answers as a call of a tool",
    "  `directly-answer`. Such models get the generic form.",
    "- K2 Horizon's forms `xml_typed` and `json`, which its template can be switched to, and its openers `<ifm|think_fast>` and",
    "  `<ifm|think_faster>`: declared is what it does unasked.",
    "- PLaMo 3: the pieces suffice; `docs/adding-a-family.md` adds it as its example.",
    "",
    "## Differences from xgrammar's built-in structural tags",
    "",
    "xgrammar 0.2.9 has tags for 19 of these families, under names that are names or aliases here. Below stands every kind of",
    "difference in turns that must call tools, thinking switched off: `tests/contract/test_family_xgrammar.py` follows grammar",
    "and tag side by side, compares all that each allows next, and fails on a difference that is not listed here, and on",
    "one listed here that is no more. What a tag allows and a grammar does not, the parser reads all the same, for a model that",
    "is not constrained may write it.",
)


def _code(text: str) -> str:
    shown = text.replace("\n", "⏎").replace("|", "&#124;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<code>{shown}</code>" if shown else ""


if __name__ == "__main__":
    print(families_page(), end="")
