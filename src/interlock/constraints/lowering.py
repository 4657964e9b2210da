"""``ConstraintSpec`` to llguidance's Lark. Pure Python: no grammar engine is loaded here.

Three properties of llguidance's lexer shape the output. It takes the longest lexeme and does not back up, so
free text that is followed by a text marker becomes one lazy lexeme ending in that marker, and fixed texts are
split until none is a proper prefix of another. Text lexemes never contain a special token. Grammars that
users bring stay in grammars of their own (``@user_0``), so no names can clash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from interlock.constraints import schema
from interlock.constraints.closers import closers
from interlock.constraints.declared import declared_literals, required_keys
from interlock.constraints.lark.quoted import quoted
from interlock.constraints.lark.syntax import LarkError
from interlock.constraints.literals import escape_regex, prefix_free, quote, regex_literal
from interlock.constraints.outline import outline
from interlock.constraints.schema.arguments import argument_grammar
from interlock.constraints.schema.guards.marks import special_text
from interlock.constraints.schema.guards.plan import GuardPlan
from interlock.constraints.schema.lower.argument_syntaxes import MarkParts
from interlock.constraints.shapes import ambiguous, ends_free, flat, join, times, unrolled, without_anchors
from interlock.constraints.user_grammar import MAX_SOURCE_CHARS, check_lark, too_long
from interlock.constraints.walk import walk
from interlock.core.constraint import (
    Alternative,
    Choice,
    ConstraintSpec,
    FreeText,
    Grammar,
    JsonValue,
    LoweredConstraint,
    Marker,
    Node,
    Regex,
    Repeat,
    Sequence,
    Text,
)
from interlock.errors import InterlockError, Problem, together

_ANY = "/(?s:.*)/"
_SPECIAL = re.compile(r"<[A-Za-z0-9_|/:.-]+>")  # spellings that Lark can write by name; ids for the others


class SchemaGrammar(Protocol):
    """A schema as Lark. ``start``: name of the rule that derives it. ``lark``: whole rules, one a line.
    ``notes``: what a caller should know, such as keywords that are only annotations. ``guards``: what must be
    checked beside the grammar. ``unenforced``: what a relaxed schema leaves out."""

    @property
    def start(self) -> str: ...
    @property
    def lark(self) -> str: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def guards(self) -> GuardPlan | None: ...
    @property
    def unenforced(self) -> tuple[Problem, ...]: ...


SchemaLowering = Callable[[JsonValue, str], SchemaGrammar]
ArgumentLowering = Callable[[JsonValue, str, MarkParts], SchemaGrammar]
GrammarConverter = Callable[[str], str]


def lower(
    spec: ConstraintSpec,
    special_tokens: Mapping[str, int],
    *,
    gbnf_to_lark: GrammarConverter | None = None,
    schema_grammar: SchemaLowering | None = None,
    options: schema.SchemaOptions = schema.GUARDED,
    trial: schema.EngineTrial | None = None,
) -> LoweredConstraint:
    """Lower ``spec`` for a vocabulary with these special tokens (spelling to id).

    gbnf_to_lark: converter for GBNF and EBNF; without one such grammars are refused.
    options: of schemas, as far as these do not say it themselves. Without ``guards`` what only they hold is refused.
    trial: relaxed schemas also lose what the engine does not take.
    Raises ``InterlockError``: ``invalid_schema`` with the problems of all schemas, ``invalid_grammar``,
    ``constraint_too_complex``.
    """
    if spec.provider != "llguidance":
        return _as_it_came(spec)
    try:
        held = partial(schema.schema_grammar, options=options, trial=trial)
        compile_arguments = partial(argument_grammar, options=options, trial=trial)
        return _Lowering(spec, special_tokens, gbnf_to_lark, schema_grammar or held, compile_arguments).run()
    except RecursionError:
        raise InterlockError("constraint_too_complex", "the constraint is nested too deeply") from None


def _as_it_came(spec: ConstraintSpec) -> LoweredConstraint:
    """For an engine that reads the text of the user itself."""
    if not isinstance(spec.root, Grammar):
        raise InterlockError("unsupported_parameter", f"no lowering for the grammar engine {spec.provider!r}")
    source = spec.root.source
    if len(source) > MAX_SOURCE_CHARS:
        raise too_long(spec.root)
    note = (
        f"held by {spec.provider} as that reads it; JSON schemas in it are not checked for what it leaves out"
    )
    return LoweredConstraint(
        provider=spec.provider, grammar=source, key=spec.digest(), notes=(note,), closers=closers(spec.root)
    )


class _Lowering:
    def __init__(
        self,
        spec: ConstraintSpec,
        special_tokens: Mapping[str, int],
        gbnf_to_lark: GrammarConverter | None,
        schema_grammar: SchemaLowering,
        argument_grammar: ArgumentLowering,
    ) -> None:
        self._spec = spec
        self._special_tokens = special_tokens
        self._gbnf_to_lark = gbnf_to_lark
        self._schema_grammar = schema_grammar
        self._rules: list[str] = []
        self._names: dict[object, str] = {}
        self._user_grammars: list[str] = []
        self._notes: list[str] = []
        self._argument_grammar = argument_grammar
        self._unenforced: list[Problem] = []
        self._refusals: list[InterlockError] = []
        self._plans: dict[JsonValue, GuardPlan] = {}
        self._split = re.compile(
            "|".join(map(re.escape, sorted(special_tokens, key=len, reverse=True))) or "(?!)"
        )
        self._pieces = prefix_free(text for node in walk(spec.root) for text in self._fixed_texts(node))

    def run(self) -> LoweredConstraint:
        start = self._node(self._spec.root)
        if self._refusals:
            raise together(self._refusals)
        lark = "\n".join([f"start: {start or quote('')}", *self._rules]) + "\n"
        grammar = self._with_user_grammars(lark)
        guards = outline(self._spec.root, self._plans, self._spelt).to_json() if self._plans else ""
        key = hashlib.sha256(f"{grammar}\0{guards}".encode()).hexdigest()
        return LoweredConstraint(
            provider=self._spec.provider,
            grammar=grammar,
            key=key,
            notes=tuple(dict.fromkeys(self._notes)),
            literals=declared_literals(self._spec.root),
            required=required_keys(self._spec.root),
            closers=closers(self._spec.root),
            guards=guards,
            unenforced=tuple(self._unenforced),
        )

    def _with_user_grammars(self, lark: str) -> str:
        if not self._user_grammars:
            return lark
        user = [{"name": f"user_{i}", "lark_grammar": text} for i, text in enumerate(self._user_grammars)]
        return json.dumps({"grammars": [{"lark_grammar": lark}, *user]})

    # one node; "" is the empty text

    def _node(self, node: Node) -> str:
        match node:
            case Text() | Marker():
                return self._literal(node)
            case FreeText():
                return self._named("T", node, self._free_text(node))
            case JsonValue():
                return self._json_value(node)
            case Regex(pattern=pattern):
                return self._named("T", node, regex_literal(without_anchors(pattern)))
            case Grammar():
                return self._user_grammar(node)
            case Choice(options=options):
                return self._named("T", node, " | ".join(quote(option) for option in options))
            case Sequence():
                return self._sequence(flat(node))
            case Alternative(items=items):
                return self._alternative(items)
            case Repeat():
                return self._repeat(node)

    def _sequence(self, items: tuple[Node, ...], *, whole_head: bool = False) -> str:
        parts: list[str] = []
        for position, item in enumerate(items):
            rest = items[position + 1 :]
            if rest and isinstance(item, FreeText):
                return join([*parts, self._free_then(item, rest)])
            if rest and ends_free(item):
                return join([*parts, self._distributed(item, rest)])
            parts.append(self._whole(item) if whole_head and position == 0 else self._node(item))
        return join(parts)

    def _whole(self, node: Node) -> str:
        """``node``, its fixed text not split."""
        if not isinstance(node, Text | Marker):
            return self._node(node)
        return join([self._special(text) if special else quote(text) for text, special in self._parts(node)])

    def _alternative(self, items: tuple[Node, ...], rest: tuple[Node, ...] = ()) -> str:
        options = [(*flat(item), *rest) for item in items]
        # beside free text, fixed text must be one lexeme: its first piece alone would lose to longer free text
        beside_free = any(option and isinstance(option[0], FreeText) for option in options)
        return self._rule([self._sequence(option, whole_head=beside_free) for option in options])

    def _repeat(self, node: Repeat) -> str:
        if node.maximum == 0:
            return ""
        first = self._rule([self._node(node.item)])
        if node.separator is None:
            return first + times(node.minimum, node.maximum)
        if ends_free(node.item) and not self._starts_special(node.separator):
            raise ambiguous("a separator")
        following = self._rule([self._sequence((*flat(node.separator), *flat(node.item)))])
        most = None if node.maximum is None else node.maximum - 1
        more = "" if most == 0 else following + times(max(node.minimum - 1, 0), most)
        return join([first, more]) if node.minimum else f"({join([first, more])})?"

    # free text and what follows it

    def _free_text(self, node: FreeText) -> str:
        """Ordinary text never contains a special token, so markers with one need no exclusion."""
        excludes = [text for text in node.excludes if not self._split.search(text)]
        parts = [_ANY]
        if excludes:
            alternatives = "|".join(escape_regex(text) for text in excludes)
            parts.append(f"~/(?s:.*)({alternatives})(?s:.*)/")
        if node.begins_not:
            parts.append(f"~/[ \\t\\r\\n]*{escape_regex(node.begins_not)}(?s:.*)/")
        return " & ".join(parts)

    def _free_then(self, free: FreeText, rest: tuple[Node, ...]) -> str:
        """``free`` up to the first occurrence of what ``rest`` begins with, and ``rest``."""
        if not rest:
            return self._node(free)
        head, tail = rest[0], rest[1:]
        match head:
            case Marker() if self._split.search(head.text):
                return self._free_then_special(free, head, tail)
            case Text(text=text) | Marker(text=text):
                until = self._named("T", ("until", free, text), f"({self._free_text(free)}) {quote(text)}")
                lazy = self._named("r", ("lazy", free, text), until, "[lazy]")
                return join([lazy, self._tail(tail)])
            case Choice(options=options):
                return self._rule([self._free_then(free, (*flat(Text(text)), *tail)) for text in options])
            case Alternative(items=items):
                return self._rule([self._free_then(free, (*flat(item), *tail)) for item in items])
            case Repeat():
                return self._rule([self._free_then(free, (*option, *tail)) for option in unrolled(head)])
            case _:
                raise ambiguous(f"a {type(head).__name__}")

    def _free_then_special(self, free: FreeText, marker: Marker, tail: tuple[Node, ...]) -> str:
        """Up to a marker that contains a special token: that token ends the text, whatever the text is."""
        (text, special), *rest = self._parts(marker)
        spelt = [self._special(part) if is_special else self._plain(part) for part, is_special in rest]
        if special:
            return join([self._node(free), self._special(text), *spelt, self._tail(tail)])
        until = self._named("T", ("up to", free, text), f"({self._free_text(free)}) {quote(text)}")
        return join([until, *spelt, self._tail(tail)])

    def _distributed(self, item: Node, rest: tuple[Node, ...]) -> str:
        """``item``, which may end in free text, followed by ``rest``."""
        if self._starts_special(rest[0]):
            return join([self._node(item), self._tail(rest)])
        if isinstance(item, Alternative):
            return self._alternative(item.items, rest)
        raise ambiguous("fixed text after a repetition")

    def _tail(self, items: tuple[Node, ...]) -> str:
        if not items:
            return ""
        key = ("tail", items)
        return self._names.get(key) or self._named("r", key, self._sequence(items) or quote(""))

    # leaves

    def _literal(self, node: Text | Marker) -> str:
        return join(
            [self._special(text) if special else self._plain(text) for text, special in self._parts(node)]
        )

    def _parts(self, node: Text | Marker) -> list[tuple[str, bool]]:
        """The text of ``node`` cut around special tokens, each part with whether it is one."""
        if isinstance(node, Text):
            return [(node.text, False)] if node.text else []
        parts, start = [], 0
        for match in self._split.finditer(node.text):
            parts += [(node.text[start : match.start()], False), (match[0], True)]
            start = match.end()
        return [part for part in (*parts, (node.text[start:], False)) if part[0]]

    def _mark_parts(self, text: str) -> list[tuple[str, str]]:
        """See ``MarkParts``."""
        return [(part, self._special(part) if special else "") for part, special in self._parts(Marker(text))]

    def _spelt(self, node: Text | Marker) -> bytes:
        return b"".join(
            special_text(self._special_tokens[text]) if is_special else text.encode()
            for text, is_special in self._parts(node)
        )

    def _special(self, text: str) -> str:
        by_name = _SPECIAL.fullmatch(text) is not None
        return text if by_name else f"<[{self._special_tokens[text]}]>"

    def _plain(self, text: str) -> str:
        return " ".join(quote(piece) for piece in self._pieces.get(text, (text,)))

    def _json_value(self, node: JsonValue) -> str:
        if node not in self._names:
            prefix = f"j{len(self._names)}"
            try:
                grammar = self._schema(node, prefix)
            except InterlockError as refusal:  # the other schemas have a say before all of it is told
                self._refusals.append(refusal)
                self._names[node] = prefix
                return prefix
            self._names[node] = grammar.start
            self._rules.append(grammar.lark.rstrip("\n"))
            self._notes.extend(grammar.notes)
            self._unenforced.extend(grammar.unenforced)
            if grammar.guards is not None:
                self._plans[node] = grammar.guards
        return self._names[node]

    def _schema(self, node: JsonValue, prefix: str) -> SchemaGrammar:
        if node.syntax == "json":
            return self._schema_grammar(node, prefix)
        return self._argument_grammar(node, prefix, self._mark_parts)

    def _user_grammar(self, node: Grammar) -> str:
        if node not in self._names:
            lark = self._lark(node)
            check_lark(node, lark)
            self._names[node] = f"@user_{len(self._user_grammars)}"
            self._user_grammars.append(lark)
        return self._names[node]

    def _lark(self, node: Grammar) -> str:
        if not node.quoted:
            return node.source if node.dialect == "lark" else self._converted(node)
        try:
            return quoted(node.source)
        except LarkError as error:
            raise InterlockError("invalid_grammar", str(error), param=node.origin or None) from None

    def _converted(self, node: Grammar) -> str:
        if self._gbnf_to_lark is None:
            raise InterlockError(
                "invalid_grammar", f"no converter for {node.dialect}", param=node.origin or None
            )
        try:
            return self._gbnf_to_lark(node.source)
        except ValueError as exc:
            raise InterlockError("invalid_grammar", str(exc), param=node.origin or None) from None

    def _fixed_texts(self, node: Node) -> list[str]:
        """The texts of ``node`` that are spelt with ordinary tokens."""
        if not isinstance(node, Text | Marker):
            return []
        return [text for text, special in self._parts(node) if not special]

    def _starts_special(self, node: Node) -> bool:
        items = flat(node)
        return bool(items) and isinstance(items[0], Marker) and self._parts(items[0])[0][1]

    # rules

    def _rule(self, options: list[str]) -> str:
        options = list(dict.fromkeys(options))
        if len(options) == 1 and re.fullmatch(r"[\w@]+", options[0]):
            return options[0]
        return self._named("r", tuple(options), " | ".join(option or quote("") for option in options))

    def _named(self, prefix: str, key: object, body: str, attributes: str = "") -> str:
        if key not in self._names:
            self._names[key] = f"{prefix}{len(self._names)}"
            self._rules.append(f"{self._names[key]}{attributes}: {body}")
        return self._names[key]
