"""Lark's notation: text to definitions. The texts of terminals are ECMAScript patterns here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from interlock.constraints.lark import common, terminals


class LarkError(ValueError):
    """The grammar is malformed, or uses what is not supported. The message begins with the line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")


class NotRegularError(LarkError):
    """A rule leads back to itself in the middle of what it derives."""


@dataclass(frozen=True, slots=True)
class Atom:
    """One lexeme. pattern: in ECMAScript's syntax, without alternatives outside of a group."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Ref:
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Seq:
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    item: Expression
    low: int
    high: int | None


Expression = Atom | Ref | Seq | Choice | Loop


@dataclass(frozen=True, slots=True)
class Definition:
    expression: Expression
    line: int


@dataclass(frozen=True, slots=True)
class LarkGrammar:
    """definitions: rules and terminals by name, one of them ``start``. ignored: what may stand before every lexeme of
    a rule and at the end."""

    definitions: Mapping[str, Definition]
    ignored: tuple[Expression, ...]


def is_terminal(name: str) -> bool:
    return name.lstrip("_")[:1].isupper()


def parse(source: str) -> LarkGrammar:
    """Raises ``LarkError``."""
    return _Parser(_tokens(source)).grammar()


_TOKEN: Final = re.compile(
    r"""
    (?P<space> [ \t\f\r\n]+ | //[^\n]* | \#[^\n]* )
  | (?P<string> "(?:\\.|[^"\\\n])*"i? )
  | (?P<regex> /(?![/*])(?:\\.|[^/\\\n])+/[a-z]* )
  | (?P<name> [!?]?_*[A-Za-z][A-Za-z0-9_]* )
  | (?P<directive> %[a-z]+ )
  | (?P<number> [0-9]+ )
  | (?P<sign> -> | \.\. | [-:|()\[\]{}?*+~,.<>@] )
    """,
    re.VERBOSE,
)
_TIMES: Final = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_MAX_DEPTH: Final = 60


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


def _tokens(source: str) -> list[_Token]:
    found, at, line = [], 0, 1
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise LarkError(line, f"unexpected {source[at]!r}")
        kind, text = str(match.lastgroup), match[0]
        if kind != "space":
            found.append(_Token(kind, text, line))
        line += text.count("\n")
        at = match.end()
    return [*found, _Token("end", "the end of the grammar", line)]


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._definitions: dict[str, Definition] = {}
        self._ignored: list[Expression] = []

    def grammar(self) -> LarkGrammar:
        while self._now.kind != "end":
            if self._now.kind == "directive":
                self._directive()
            else:
                self._definition()
        if "start" not in self._definitions:
            raise LarkError(self._now.line, "there is no rule `start`")
        for name in self._referenced:
            if name.name not in self._definitions:
                raise LarkError(name.line, f"{name.name!r} is not defined")
        return LarkGrammar(self._definitions, tuple(self._ignored))

    # definitions

    def _definition(self) -> None:
        token = self._take("name")
        if self._peek("."):  # a priority; all derivations count here
            self._at += 1
            self._take("number")
        if not self._peek(":"):
            self._fail(f"`:` expected after {token.text!r}; attributes and templates are not supported")
        self._at += 1
        self._define(token.text.lstrip("!?"), self._choice(), token.line)

    def _define(self, name: str, expression: Expression, line: int) -> None:
        if name in self._definitions:
            raise LarkError(line, f"{name!r} is defined twice")
        self._definitions[name] = Definition(expression, line)

    def _directive(self) -> None:
        token = self._take("directive")
        if token.text == "%ignore":
            self._ignored.append(self._choice())
        elif token.text == "%import":
            self._import()
        else:
            raise LarkError(token.line, f"{token.text} is not supported, only %import and %ignore")

    def _import(self) -> None:
        library = self._take("name")
        if library.text != "common":
            raise LarkError(library.line, f"only `common` can be imported, not {library.text!r}")
        if self._accept("("):
            names = [self._take("name")]
            while self._accept(","):
                names.append(self._take("name"))
            self._expect(")")
        else:
            self._expect(".")
            names = [self._take("name")]
        for name in names:
            pattern = common.PATTERNS.get(name.text)
            if pattern is None:
                raise LarkError(
                    name.line, f"`common` has no {name.text!r}; it has {', '.join(common.PATTERNS)}"
                )
            known_as = self._take("name").text if len(names) == 1 and self._accept("->") else name.text
            self._define(known_as, Atom(pattern), name.line)

    # expressions

    def _choice(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._fail("groups are nested too deeply")
        self._accept("|")
        items = [self._sequence()]
        while self._accept("|"):
            items.append(self._sequence())
        self._depth -= 1
        return items[0] if len(items) == 1 else Choice(tuple(items))

    def _sequence(self) -> Expression:
        items: list[Expression] = []
        while self._starts_item():
            items.append(self._repeated(self._item()))
        if self._accept("->"):  # an alias names a node of the tree, and no tree is made
            self._take("name")
        return items[0] if len(items) == 1 else Seq(tuple(items))

    def _starts_item(self) -> bool:
        match self._now.kind, self._now.text:
            case (("string" | "regex"), _):
                return True
            case "name", _:
                return not self._starts_definition()
            case "sign", text:
                if text in "<@":
                    self._fail("special tokens and references to other grammars cannot be used here")
                return text in "(["
        return False

    def _starts_definition(self) -> bool:
        following = self._tokens[self._at + 1]
        priority = following.text == "." and self._tokens[self._at + 2].kind == "number"
        return following.text == ":" or priority

    def _item(self) -> Expression:
        token = self._tokens[self._at]
        self._at += 1
        if token.kind == "name":
            return Ref(token.text.lstrip("!?"), token.line)
        if token.kind in ("string", "regex"):
            return self._lexeme(token)
        inner = self._choice()
        self._expect(")" if token.text == "(" else "]")
        return inner if token.text == "(" else Loop(inner, 0, 1)

    def _lexeme(self, token: _Token) -> Expression:
        try:
            if token.kind == "regex":
                return Atom(terminals.of_regex(token.text))
            if self._accept(".."):
                return Atom(terminals.of_range(token.text, self._take("string").text))
            return Atom(terminals.of_string(token.text))
        except ValueError as error:
            raise LarkError(token.line, f"{token.text[:100]}: {error}") from None

    def _repeated(self, item: Expression) -> Expression:
        while self._now.kind == "sign" and (self._now.text in _TIMES or self._now.text in ("~", "{")):
            sign = self._take("sign").text
            low, high = _TIMES.get(sign) or self._bounds(sign)
            item = Loop(item, low, high)
        return item

    def _bounds(self, sign: str) -> tuple[int, int | None]:
        """After ``~``: ``n`` or ``n..m``; after ``{``: ``n}``, ``n,}`` or ``n,m}``."""
        low = self._number()
        high: int | None = low
        if self._accept(".." if sign == "~" else ","):
            high = self._number() if sign == "~" or self._now.kind == "number" else None
        if sign == "{":
            self._expect("}")
        if high is not None and low > high:
            self._fail(f"{low} to {high} times is not possible")
        return low, high

    # tokens

    @property
    def _now(self) -> _Token:
        return self._tokens[self._at]

    @property
    def _referenced(self) -> list[Ref]:
        pending: list[Expression] = [item.expression for item in self._definitions.values()] + self._ignored
        found = []
        while pending:
            match pending.pop():
                case Ref() as ref:
                    found.append(ref)
                case Seq(items=items) | Choice(items=items):
                    pending += items
                case Loop(item=item):
                    pending.append(item)
        return found

    def _peek(self, sign: str) -> bool:
        return self._now.kind == "sign" and self._now.text == sign

    def _accept(self, sign: str) -> bool:
        found = self._peek(sign)
        self._at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            self._fail(f"`{sign}` expected, not {self._now.text[:100]!r}")

    def _take(self, kind: str) -> _Token:
        if self._now.kind != kind:
            self._fail(f"a {kind} expected, not {self._now.text[:100]!r}")
        self._at += 1
        return self._tokens[self._at - 1]

    def _number(self) -> int:
        text = self._take("number").text
        if len(text) > 6:
            self._fail(f"{text[:20]} is too often")
        return int(text)

    def _fail(self, message: str) -> NoReturn:
        raise LarkError(self._now.line, message)
