"""What a model family is: plain data, from which ``families/wire`` renders, constrains and parses.

A call is a sequence of pieces in the order the model writes them. The same pieces give the grammar
(constrain), the parser (parse) and the spelling of earlier turns (render), so the three agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from interlock.core.argument_syntax import ArgumentSyntax

Thinking = Literal["none", "open", "closed", "optional"]
"""How a turn begins. none: the model does not think. open: the prompt ends inside thinking. closed: thinking is
switched off or already over. optional: the model itself may open it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A structural marker: whatever in it is a token of the vocabulary is matched by id, the rest by text."""

    text: str


@dataclass(frozen=True, slots=True)
class Lit:
    """Fixed ordinary text. The parser tolerates other white space in it."""

    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """Fixed text of a header, of no meaning. The parser takes anything up to the next mark for it."""

    text: str


@dataclass(frozen=True, slots=True)
class Recipient:
    """``before NAME after``, in front of a call's opener: the header of a message to the tool. The parser drops it, as
    ``AnswerFormat.header_open`` and ``header_close`` say."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Name:
    """The tool's name, bare. glued: words of the header that models write right behind it; the parser takes one off
    a name that no tool has, where the rest is a tool's."""

    glued: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberedName:
    """``prefix NAME separator N``, N counting calls. The whole is the call's id. A missing prefix or number is
    tolerated."""

    prefix: str
    separator: str = ":"


@dataclass(frozen=True, slots=True)
class Number:
    """The number of the call in its turn."""

    first: int = 0


@dataclass(frozen=True, slots=True)
class CallId:
    """The call's id, invented by the model: ``size`` letters and digits."""

    size: int = 9


@dataclass(frozen=True, slots=True)
class Arguments:
    """The call's arguments as one object in an argument syntax."""

    syntax: ArgumentSyntax = "json"


@dataclass(frozen=True, slots=True)
class JsonEnvelope:
    """One JSON object that holds name and arguments: ``{"name": "N", "arguments": {..}}``.

    ``argument_aliases`` are keys the parser also takes for the arguments, never written by us. number_key: a
    key before the name whose value is the number of the call, as a string. name_first: an object whose first
    key is another one is no call. id_key: a key after the arguments that holds the call's id; only earlier turns
    have it.
    """

    name_key: str = "name"
    arguments_key: str = "arguments"
    argument_aliases: tuple[str, ...] = ("parameters",)
    number_key: str = ""
    id_key: str = ""
    name_first: bool = False


Piece = Mark | Lit | Header | Recipient | Name | NumberedName | Number | CallId | Arguments | JsonEnvelope


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallSyntax:
    """How a family writes calls.

    call: pieces of one call. variants: other forms of a call that the parser takes, each with a marker of its
    own. separator: text between two calls. section_open, section_close: pieces around all calls of a turn, if
    any. lead: what the family writes between an answer and its calls; always_leads: also where there is no
    answer. bare: a text with which calls may begin without any marker, at the beginning of an answer; bare_call:
    the pieces of such a call, if they are not those of ``call``. writes_marks: false where the section's marks are
    read but not written. single: a turn holds one call. item_separator, key_separator: the family's JSON spacing. ids: whose form ids
    of calls have.
    """

    call: tuple[Piece, ...]
    variants: tuple[tuple[Piece, ...], ...] = ()
    separator: str = "\n"
    section_open: tuple[Piece, ...] = ()
    section_close: tuple[Piece, ...] = ()
    lead: str = "\n"
    always_leads: bool = False
    bare: str = ""
    bare_call: tuple[Piece, ...] = ()
    writes_marks: bool = True
    single: bool = False
    item_separator: str = ", "
    key_separator: str = ": "
    ids: Literal["openai", "mistral"] = "openai"

    @property
    def opener(self) -> str:
        """Text of the first marker of a turn's calls, ``""`` if there is none: what switches free text to
        calls."""
        return _first_mark((*self.section_open, *self.call))

    @property
    def openers(self) -> tuple[str, ...]:
        """Every marker that begins calls."""
        texts = (self.opener, self.call_opener, *(_first_mark(variant) for variant in self.variants))
        return tuple(dict.fromkeys(filter(None, texts)))

    @property
    def call_opener(self) -> str:
        """Text of the marker that begins one call, ``""`` if calls have none of their own."""
        first = next(piece for piece in self.call if not isinstance(piece, Recipient))
        return first.text if isinstance(first, Mark) else ""

    @property
    def arguments(self) -> ArgumentSyntax:
        return next((piece.syntax for piece in self.call if isinstance(piece, Arguments)), "json")

    def pieces(self) -> Iterator[Piece]:
        yield from (*self.section_open, *self.call, *self.section_close)
        yield from self.bare_call
        for variant in self.variants:
            yield from variant


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningFormat:
    """How a family thinks.

    after_open, before_close, after_close: white space the family writes there; it is no part of the
    reasoning nor of the answer. enabled_kwarg: template variable that switches thinking. history_key: where
    the template looks for the reasoning of earlier turns. effort_kwarg: template variable for the effort. efforts: words
    for it that the model does not know, each with the one it is told instead. budget_kwarg: template variable for the
    thinking budget. on_variables, off_variables: further template variables that switch thinking. closed_by_tool_call: a
    call's opener ends thinking without ``close``. repeats: thinking may begin again after text or a call. resume: marker that the model
    writes after ``close`` to go on.
    """

    open: str
    close: str
    after_open: str = "\n"
    before_close: str = "\n"
    after_close: str = "\n\n"
    enabled_kwarg: str = "enable_thinking"
    history_key: str = "reasoning_content"
    effort_kwarg: str = "reasoning_effort"
    efforts: tuple[tuple[str, str], ...] = ()
    budget_kwarg: str = ""
    on_variables: tuple[tuple[str, str | bool], ...] = ()
    off_variables: tuple[tuple[str, str | int | bool], ...] = ()
    closed_by_tool_call: bool = False
    repeats: bool = False
    resume: str = ""

    def switch(self, enabled: bool) -> dict[str, str | int | bool]:
        """The template variables that switch thinking on or off."""
        return {self.enabled_kwarg: enabled, **dict(self.on_variables if enabled else self.off_variables)}

    def word_for(self, effort: str) -> str:
        """What the model is told for an effort."""
        return dict(self.efforts).get(effort, effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFormat:
    """Markers around the visible answer, of no meaning to a reader.

    open, close: around the answer; close is ``""`` where a stop token ends it. lead_open, lead_close: around text
    in front of calls, ``""`` where there can be none; leads_always: written in front of calls also without text.
    turn_close: what ends every turn. others: further markers that the parser drops. header_open, header_close: around
    the words that begin a message; words that the family does not have are dropped, unless they say a recipient.
    opened_by_prompt: where thinking is switched off, the prompt ends inside the answer.
    """

    open: str
    close: str = ""
    lead_open: str = ""
    lead_close: str = ""
    leads_always: bool = False
    turn_close: str = ""
    others: tuple[str, ...] = ()
    header_open: str = ""
    header_close: str = ""
    opened_by_prompt: bool = False

    def markers(self) -> tuple[str, ...]:
        texts = (self.open, self.close, self.lead_open, self.lead_close, self.turn_close, *self.others)
        return tuple(dict.fromkeys(filter(None, texts)))


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
    tools. template: a chat template for models that bring none. stop_tokens: spellings of tokens that end a turn,
    in addition to the vocabulary's. reserved: texts that may not stand in arguments or results of earlier turns,
    because the model could not tell them from markup. architectures: GGUF architectures or HF model types that
    are this family's where the template does not say. declares_in_messages: its template shows the tools that a
    message in the conversation declares, in their place.
    """

    name: str
    aliases: tuple[str, ...] = ()
    title: str = ""
    tool_calls: ToolCallSyntax
    reasoning: ReasoningFormat | None = None
    answer: AnswerFormat | None = None
    tool_prompt: ToolPrompt | None = None
    template: str | None = None
    stop_tokens: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    declares_in_messages: bool = False

    def markers(self) -> tuple[str, ...]:
        """Every text of this family in which special tokens of the vocabulary have a meaning."""
        texts = [piece.text for piece in self.tool_calls.pieces() if isinstance(piece, Mark | Lit | Header)]
        recipients = [piece for piece in self.tool_calls.pieces() if isinstance(piece, Recipient)]
        texts += [text for piece in recipients for text in (piece.before, piece.after)]
        texts += [self.tool_calls.separator] if "<" in self.tool_calls.separator else []
        texts += _argument_markers(self.tool_calls.arguments)
        if self.reasoning is not None:
            texts += [self.reasoning.open, self.reasoning.close, self.reasoning.resume]
        if self.answer is not None:
            texts += self.answer.markers()
        return tuple(dict.fromkeys(filter(None, texts)))


def _argument_markers(syntax: ArgumentSyntax) -> list[str]:
    """The fixed texts of an argument syntax."""
    if syntax == "json":
        return []
    texts = [getattr(syntax, name) for name in type(syntax).__dataclass_fields__]
    return [text for text in texts if isinstance(text, str)]


def _first_mark(pieces: tuple[Piece, ...]) -> str:
    return next((piece.text for piece in pieces if isinstance(piece, Mark)), "")
