"""Where the grammars of families and xgrammar's built-in structural tags differ: data for the docs, and for the test that
follows both side by side and finds every difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One kind of text that only one side allows.

    families: whose, by name. by: the side that allows more. what, why: for the docs. where: regular expression for the
    end of the text so far, as we write it. next: the characters that the other side lacks there; empty: any.
    """

    families: tuple[str, ...]
    by: Literal["us", "tag"]
    what: str
    why: str
    where: str
    next: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Respelling:
    """One place where both sides write the same thing differently. ours, theirs: what each writes after ``where``."""

    families: tuple[str, ...]
    what: str
    why: str
    where: str
    ours: str
    theirs: str


_JSON = ("llama3", "kimi_k2", "deepseek_r1", "deepseek_v3_1", "qwen3", "exaone", "harmony")
_DSML = ("deepseek_v3_2", "deepseek_v4", "deepseek_v4_1")
_JSON_IN_TAGS = ("kimi_k3", "qwen3_coder", "mimo", "minimax_m2", "glm_4_7", *_DSML)
_RAW = (*_JSON_IN_TAGS, "cohere_cofl", "gemma4", "minimax_m3")
_SPACE = " \t\r\n"
_NOT_ASCII = "".join(map(chr, range(128, 256)))  # bytes of no character's encoding, where ours lacks them
_END = chr(256)
# The end of a text that is in a call's JSON, but in no string of it.
_OUTSIDE_STRINGS = (
    r'(?:parameters": |arguments": |json\n|sep｜>|argument_begin\|>|<\|message\|>)(?:[^"\\]|"(?:[^"\\]|\\.)*")*'
)

RESPELLINGS = (
    Respelling(
        families=("harmony",),
        what="the tag has no space before `<|constrain|>json`",
        why="gpt-oss writes the space, as the description of its format shows",
        where=r"<\|channel\|>commentary to=functions\.(?:get_weather|note)",
        ours=" <|constrain|>json<|message|>",
        theirs="<|constrain|>json<|message|>",
    ),
    Respelling(
        families=("harmony",),
        what="the tag has `<|call|>` after the call",
        why="it is a stop token: it ends the turn, beside the grammar",
        where=r"\}",
        ours="",
        theirs="<|call|>",
    ),
    Respelling(
        families=("minimax_m2",),
        what="with thinking off the tag has an empty block of thinking and five line breaks before the call",
        why="that block is part of the prompt here, as in every family",
        where=r"\A",
        ours="",
        theirs="\n</think>\n\n\n\n\n",
    ),
)

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        families=_JSON,
        by="tag",
        what="JSON without a space after `:` or `,`, and other white space",
        why="one spelling, that of the model's template",
        where=_OUTSIDE_STRINGS,
        next=_SPACE + '"-0123456789[{tf',
    ),
    Difference(
        families=_JSON_IN_TAGS,
        by="tag",
        what="JSON without a space after `:` or `,`",
        why="one spelling, that of the model's template",
        where=r"[:,]",
    ),
    Difference(
        families=(*_JSON, *_JSON_IN_TAGS),
        by="tag",
        what="escapes of characters that need none, and capital digits in `\\u`",
        why="one spelling for each string",
        where=r"\\(?:u[0-9a-f]{0,3})?",
    ),
    Difference(
        families=_RAW,
        by="tag",
        what="white space between tags, and around values that are no text",
        why="one spelling, that of the model's template",
        where="",
        next=_SPACE,
    ),
    Difference(
        families=_RAW,
        by="tag",
        what="bytes that are not UTF-8 in raw text",
        why="an answer is text",
        where="",
        next=_NOT_ASCII,
    ),
    Difference(
        families=("qwen3_coder",),
        by="tag",
        what="no line break after `<parameter=..>`, and before and after `</parameter>`",
        why="the template writes them, and without them a line break of the value's own could not be told apart",
        where=r"<parameter=\w+>(?:\n[^<]+)?|</parameter>",
    ),
    Difference(
        families=("qwen3_coder",),
        by="us",
        what="`</function>` right after the line of `<function=..>` in a call without parameters",
        why="the template writes it so; the tag asks for an empty line",
        where=r"<function=\w+>\n",
        next="<",
    ),
    Difference(
        families=("qwen3_coder",),
        by="us",
        what="a call that begins with `<function=..>`, without `<tool_call>`",
        why="models write it; so it is held to the schema as well",
        where=r"\A<",
        next="f",
    ),
    Difference(
        families=(*_DSML, "minimax_m2"),
        by="tag",
        what="no line break after a parameter, and before the end of a call without parameters",
        why="the models' own encoder or template writes it",
        where=r'parameter>|name="\w+">\n',
        next="<",
    ),
    Difference(
        families=_DSML,
        by="us",
        what="calls without the two line breaks, or with one of them, where no text is before them",
        why="the encoder puts them between text and calls",
        where=r"\A\n?",
        next="<",
    ),
    Difference(
        families=("llama3",),
        by="us",
        what="`<|python_tag|>` in front of calls",
        why="the models write it, and the parser reads it",
        where=r"\A",
        next="<",
    ),
    Difference(
        families=("llama3",),
        by="tag",
        what="text between and after calls that are required",
        why="such a turn is its calls alone",
        where=r'\}(?:;(?: (?:\{(?:"n?a?m?e?"?:?)?)?)?)?',
    ),
    Difference(
        families=("qwen3", "qwen3_coder", "mimo", "glm_4_7", "minimax_m3", "exaone", "gemma4"),
        by="tag",
        what="text between and after calls that are required",
        why="such a turn is its calls alone",
        where=r"(?:</tool_call>|<tool_call\|>)[^>]*(?:<tool_call>(?:\n(?:<[functio]*)?)?)?",
    ),
    Difference(
        families=("kimi_k2", "kimi_k3", "cohere_cofl"),
        by="tag",
        what="numbers of calls of more than four digits",
        why="the number counts the calls of the turn",
        where=r'(?:index="|id="|:)\d{4}',
        next="0123456789",
    ),
    Difference(
        families=("kimi_k3",),
        by="tag",
        what="an answer before calls that are required",
        why="such a turn is its calls alone",
        where=r"\A(?:(?!<\|close\|>response<\|sep\|>).)*",
    ),
    Difference(
        families=("minimax_m3",),
        by="us",
        what="a blank after a number",
        why="the grammar engine needs another way on than the marker's token there; readers ignore it",
        where=r">-?\d+",
        next=" ",
    ),
    Difference(
        families=("cohere_cofl",),
        by="us",
        what="lists and objects as JSON in one value",
        why="items that must differ can be watched in it",
        where=r'type="',
        next="j",
    ),
    Difference(
        families=("cohere_cofl",),
        by="tag",
        what="lists and objects as nested values of the types `list` and `dict`",
        why="the parser reads them",
        where=r'type="',
        next="ld",
    ),
    Difference(
        families=("harmony",),
        by="tag",
        what="a turn that must call a tool, without a call",
        why="it must call one",
        where=r"\A",
        next=_END,
    ),
    Difference(
        families=("harmony",),
        by="tag",
        what="` to=functions.N<|channel|>commentary <|constrain|>json`",
        why="the template writes `json` alone; the parser reads both",
        where=r"to=functions\.\w+<\|channel\|>commentary ",
        next="<",
    ),
    Difference(
        families=("harmony",),
        by="tag",
        what="several calls in a turn",
        why="a call ends the turn",
        where=r"\}",
        next="<",
    ),
    Difference(
        families=("harmony",),
        by="us",
        what="a call on the channel `analysis`",
        why="gpt-oss writes it",
        where=r"<\|channel\|>",
        next="a",
    ),
)
