"""A model's chat template, run as Hugging Face runs it: same environment, same filters, sandboxed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from interlock.errors import InterlockError
from interlock.families.wire import json_text

# What a template's own code can raise on a conversation that it was not written for.
_TEMPLATE_FAULTS = (
    jinja2.TemplateError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)

# For a model that brings no template: the form that most chat models know.
DEFAULT_TEMPLATE = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""


class ChatTemplate:
    """A compiled template. Immutable; renders are independent of each other.

    Raises ``InterlockError`` (``invalid_value``) if ``source`` is no valid template.
    """

    def __init__(
        self,
        source: str,
        *,
        bos_token: str = "",
        eos_token: str = "",
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self.source = source
        self._environment = _environment(now)
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        self._template = self._compile(source)
        self._snippets: dict[str, jinja2.Template] = {}  # a few texts of our own, each compiled once

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        variables: Mapping[str, Any] | None = None,
        seam: str = "",
    ) -> str:
        """The prompt, with the beginning of the assistant's turn.

        seam: a character to keep as it is also where the template escapes it, and to leave out of messages. Raises
        ``InterlockError`` (``invalid_messages``) with the template's own message if it refuses the conversation.
        """
        known = {**self._tokens, "messages": messages, "tools": tools, "add_generation_prompt": True}
        return self._run(self._template, {"documents": None, **(variables or {}), **known}, seam)

    def snippet(self, source: str, variables: Mapping[str, Any], seam: str = "") -> str:
        """Render a piece of template of our own."""
        if source not in self._snippets:
            self._snippets[source] = self._compile(source)
        return self._run(self._snippets[source], variables, seam)

    def _compile(self, source: str) -> jinja2.Template:
        try:
            return self._environment.from_string(source)
        except jinja2.TemplateError as error:
            raise InterlockError(
                "invalid_value", f"the model's chat template is malformed: {error}", param="model"
            ) from error

    def _run(self, template: jinja2.Template, variables: Mapping[str, Any], seam: str) -> str:
        try:
            text = template.render(variables)
        except _TEMPLATE_FAULTS as error:
            message = str(error).replace(seam, "") if seam else str(error)
            raise InterlockError(
                "invalid_messages",
                f"the model's chat template refuses this conversation: {message or type(error).__name__}",
                param="messages",
            ) from error
        # JSON and Python's ``repr`` may escape it; no text of the request spells it so.
        return text.replace(f"\\u{ord(seam):04x}", seam) if seam else text


class _Generation(Extension):
    """``{% generation %}`` marks text for training; for a prompt it is transparent."""

    tags = {"generation"}  # noqa: RUF012  Jinja reads it from the class

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _Environment(ImmutableSandboxedEnvironment):
    """Templates may change lists: those they are given are made for one render. Some models' templates do."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return (isinstance(obj, list) and not attr.startswith("_")) or super().is_safe_attribute(
            obj, attr, value
        )


def _environment(now: Callable[[], datetime]) -> ImmutableSandboxedEnvironment:
    # Nothing is escaped: the output is a prompt, not HTML.
    environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: now().strftime(form)
    return environment


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Hugging Face's ``tojson``: the standard library's JSON, without HTML escapes."""
    if isinstance(value, Iterator):
        value = list(value)  # of a filter such as map; other interpreters of these templates take it
    item_separator, key_separator = separators or (", " if indent is None else ",", ": ")
    return json_text.dumps(
        value,
        item_separator=item_separator,
        key_separator=key_separator,
        indent=" " * indent if isinstance(indent, int) else indent,
        sort_keys=sort_keys,
        string=json.dumps if ensure_ascii else None,
    )


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
