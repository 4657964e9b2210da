"""What a model family is: plain data, from which ``families/wire`` renders, constrains and parses.

A call is a sequence of pieces in the order the model writes them. The same pieces give the grammar
(constrain), the parser (parse) and the spelling of earlier turns (render), so the three agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from interlock.core.constraint import ArgumentSyntaxName

Thinking = Literal["none", "open", "closed", "optional"]
"""How a turn begins. none: the model does not think. open: the prompt ends inside thinking. closed: thinking is
switched off or already over. optional: the model itself may open it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A structural marker: matched by id where the vocabulary has this spelling as one token, by text
    else."""

    text: str


@dataclass(frozen=True, slots=True)
class Lit:
    """Fixed ordinary text. The parser tolerates other white space where ``text`` is only white space."""

    text: str


@dataclass(frozen=True, slots=True)
class Name:
    """The tool's name, bare."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The call's arguments as one object in an argument syntax."""

    syntax: ArgumentSyntaxName = "json"


@dataclass(frozen=True, slots=True)
class JsonEnvelope:
    """One JSON object that holds name and arguments: ``{"name": "N", "arguments": {..}}``.

    ``argument_aliases`` are keys the parser also takes for the arguments, never written by us.
    """

    name_key: str = "name"
    arguments_key: str = "arguments"
    argument_aliases: tuple[str, ...] = ("parameters",)


Piece = Mark | Lit | Name | Arguments | JsonEnvelope


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallSyntax:
    """How a family writes calls.

    call: pieces of one call. separator: text between two calls. section_open, section_close: pieces
    around all calls of a turn, if any. item_separator, key_separator: the family's JSON spacing.
    """

    call: tuple[Piece, ...]
    separator: str = "\n"
    section_open: tuple[Piece, ...] = ()
    section_close: tuple[Piece, ...] = ()
    item_separator: str = ", "
    key_separator: str = ": "

    @property
    def opener(self) -> str:
        """Text of the first marker of a turn's calls: what switches free text to calls."""
        return _first_mark((*self.section_open, *self.call))

    @property
    def call_opener(self) -> str:
        """Text of the first marker of one call."""
        return _first_mark(self.call)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningFormat:
    """How a family thinks.

    after_open, before_close, after_close: white space the family writes there; it is no part of the
    reasoning nor of the answer. enabled_kwarg: template variable that switches thinking. history_key: where
    the template looks for the reasoning of earlier turns. closed_by_tool_call: a call's opener ends thinking
    without ``close``.
    """

    open: str
    close: str
    after_open: str = "\n"
    before_close: str = "\n"
    after_close: str = "\n\n"
    enabled_kwarg: str = "enable_thinking"
    history_key: str = "reasoning_content"
    closed_by_tool_call: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPrompt:
    """How tools are told to a model whose template ignores them.

    system: Jinja template with ``tools`` (list of function objects) in scope, appended to the system
    message. result: Jinja template with ``content`` and ``name``; the text of a tool result, sent in
    ``result_role``.
    """

    system: str
    result: str
    result_role: Literal["user", "tool"] = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFamily:
    """One declaration.

    name, aliases: what ``--family`` takes. tool_prompt: set where the model's own template does not show
    tools. stop_tokens: spellings of tokens that end a turn, in addition to the vocabulary's.
    """

    name: str
    aliases: tuple[str, ...] = ()
    title: str = ""
    tool_calls: ToolCallSyntax
    reasoning: ReasoningFormat | None = None
    tool_prompt: ToolPrompt | None = None
    stop_tokens: tuple[str, ...] = ()


def _first_mark(pieces: tuple[Piece, ...]) -> str:
    for piece in pieces:
        if isinstance(piece, Mark):
            return piece.text
    raise ValueError("a tool call syntax needs a marker")
