"""A grammar whose language is regular, as one ECMAScript pattern.

Rules are put in where they are named. Rules that lead back to themselves at the right end, or at the left end, are
equations ``X = A X | B`` and their like, which Arden's lemma solves (``A* B``). What leads back in the middle derives
no regular language in general, and is refused.

All derivations count: there is no lexer that would take the longest terminal and not go back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from interlock.constraints.lark.syntax import (
    Atom,
    Choice,
    Expression,
    LarkError,
    LarkGrammar,
    Loop,
    NotRegularError,
    Ref,
    Seq,
    is_terminal,
    parse,
)

MAX_SOURCE_CHARS: Final = 64 * 1024
MAX_PATTERN_CHARS: Final = 100_000
Side = Literal["right", "left"]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the pattern. kind: what it may be put beside without a group."""

    text: str
    kind: Literal["group", "sequence", "choice"]


_EMPTY: Final = _Piece("", "sequence")
_Equation = dict[str, _Piece]  # what stands beside each rule of the component; under "" what stands alone


class _CallsItselfError(Exception):
    """A rule leads back to itself elsewhere than at the end that is looked at."""


def pattern(source: str) -> str:
    """The strings that the grammar's ``start`` derives, as a pattern for a whole text. Raises ``LarkError``; ``NotRegularError``
    where there is none."""
    if len(source) > MAX_SOURCE_CHARS:
        raise LarkError(1, f"the grammar is longer than {MAX_SOURCE_CHARS} characters")
    try:
        return _Solver(parse(source)).pattern()
    except RecursionError:
        raise LarkError(1, "rules are nested too deeply") from None


class _Solver:
    def __init__(self, grammar: LarkGrammar) -> None:
        self._grammar = grammar
        self._known: dict[str, _Piece] = {}
        self._skipped = _EMPTY
        if grammar.ignored:
            self._solve_below(grammar.ignored)
            ignored = _choice([self._expression(item, lexical=True) for item in grammar.ignored])
            self._skipped = _loop(ignored, 0, None)

    def pattern(self) -> str:
        self._solve_below([Ref("start", 1)])
        return _sequence([self._known["start"], self._skipped]).text

    def _solve_below(self, roots: Iterable[Expression]) -> None:
        for component in self._components(roots):
            first = component[0]
            definition = self._grammar.definitions[first]
            if len(component) == 1 and first not in set(_names(definition.expression)):
                self._known[first] = self._expression(definition.expression, lexical=is_terminal(first))
            else:
                self._solve(component)

    # without recursion

    def _expression(self, expression: Expression, *, lexical: bool) -> _Piece:
        """lexical: inside a terminal, where nothing is ignored."""
        match expression:
            case Atom(pattern=text):
                lexeme = _Piece(text, "sequence")
                return lexeme if lexical else _sequence([self._skipped, lexeme])
            case Ref(name=name, line=line):
                if lexical and not is_terminal(name):
                    raise LarkError(line, f"a terminal cannot refer to the rule {name!r}")
                found = self._known[name]
                return found if lexical or not is_terminal(name) else _sequence([self._skipped, found])
            case Seq(items=items):
                return _sequence([self._expression(item, lexical=lexical) for item in items])
            case Choice(items=items):
                return _choice([self._expression(item, lexical=lexical) for item in items])
            case Loop(item=item, low=low, high=high):
                return _loop(self._expression(item, lexical=lexical), low, high)

    # with recursion

    def _solve(self, component: Sequence[str]) -> None:
        definitions = self._grammar.definitions
        line = definitions[component[0]].line
        if any(is_terminal(name) for name in component):
            raise LarkError(line, f"the terminal {component[0]!r} refers to itself")
        for side in ("right", "left"):
            try:
                equations = {
                    name: self._linear(definitions[name].expression, frozenset(component), side)
                    for name in component
                }
            except _CallsItselfError:
                continue
            self._eliminate(list(component), equations, side)
            return
        raise NotRegularError(
            line, f"the rule {component[0]!r} leads back to itself in the middle of what it derives"
        )

    def _linear(self, expression: Expression, component: frozenset[str], side: Side) -> _Equation:
        if not component.intersection(_names(expression)):
            return {"": self._expression(expression, lexical=False)}
        match expression:
            case Ref(name=name):
                return {name: _EMPTY}
            case Choice(items=items):
                return _sum([self._linear(item, component, side) for item in items])
            case Loop(item=item, low=low, high=1):
                once = self._linear(item, component, side)
                return once if low else _sum([once, {"": _EMPTY}])
            case Seq(items=items):
                last, rest = (items[-1], items[:-1]) if side == "right" else (items[0], items[1:])
                if component.intersection(*([_names(Seq(rest))])):
                    raise _CallsItselfError
                beside = _sequence([self._expression(item, lexical=False) for item in rest])
                return {
                    name: _beside(beside, piece, side)
                    for name, piece in self._linear(last, component, side).items()
                }
        raise _CallsItselfError

    def _eliminate(self, component: list[str], equations: dict[str, _Equation], side: Side) -> None:
        for index, name in enumerate(component):
            equation = _without_self(name, equations[name], side)
            equations[name] = equation
            for other in component[index + 1 :]:
                factor = equations[other].pop(name, None)
                if factor is not None:
                    equations[other] = _sum([equations[other], _scaled(factor, equation, side)])
        for name in reversed(component):
            equation = equations[name]
            parts = [equation[""]] if "" in equation else []
            parts += [
                _beside(factor, self._known[other], side)
                for other, factor in equation.items()
                if other and other in self._known
            ]
            if not parts:
                line = self._grammar.definitions[name].line
                raise LarkError(line, f"the rule {name!r} never ends")
            self._known[name] = _choice(parts)

    # order

    def _components(self, roots: Iterable[Expression]) -> list[list[str]]:
        """Strongly connected rules, those that others need first (Tarjan's algorithm)."""
        index: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []
        found: list[list[str]] = []

        def visit(name: str) -> None:
            index[name] = low[name] = len(index)
            stack.append(name)
            for other in _names(self._grammar.definitions[name].expression):
                if other in self._known:
                    continue
                if other not in index:
                    visit(other)
                    low[name] = min(low[name], low[other])
                elif other in stack:
                    low[name] = min(low[name], index[other])
            if low[name] == index[name]:
                cut = stack.index(name)
                found.append(stack[cut:])
                del stack[cut:]

        for root in roots:
            for name in _names(root):
                if name not in index and name not in self._known:
                    visit(name)
        return found


def _names(expression: Expression) -> list[str]:
    match expression:
        case Ref(name=name):
            return [name]
        case Seq(items=items) | Choice(items=items):
            return [name for item in items for name in _names(item)]
        case Loop(item=item):
            return _names(item)
    return []


# equations


def _sum(equations: Iterable[_Equation]) -> _Equation:
    out: dict[str, list[_Piece]] = {}
    for equation in equations:
        for name, piece in equation.items():
            out.setdefault(name, []).append(piece)
    return {name: _choice(pieces) for name, pieces in out.items()}


def _scaled(factor: _Piece, equation: Mapping[str, _Piece], side: Side) -> _Equation:
    return {name: _beside(factor, piece, side) for name, piece in equation.items()}


def _without_self(name: str, equation: _Equation, side: Side) -> _Equation:
    """Arden's lemma: ``X = A X | B`` is ``A* B``, and ``X = X A | B`` is ``B A*``."""
    own = equation.get(name)
    rest = {other: piece for other, piece in equation.items() if other != name}
    return rest if own is None or not own.text else _scaled(_loop(own, 0, None), rest, side)


def _beside(factor: _Piece, piece: _Piece, side: Side) -> _Piece:
    return _sequence([factor, piece] if side == "right" else [piece, factor])


# pieces


def _sequence(pieces: Sequence[_Piece]) -> _Piece:
    pieces = [piece for piece in pieces if piece.text]
    if len(pieces) == 1:
        return pieces[0]
    return _checked(
        "".join(_grouped(piece) if piece.kind == "choice" else piece.text for piece in pieces), "sequence"
    )


def _choice(pieces: Sequence[_Piece]) -> _Piece:
    distinct = list(dict.fromkeys(pieces))
    return distinct[0] if len(distinct) == 1 else _checked("|".join(piece.text for piece in distinct), "choice")


def _loop(piece: _Piece, low: int, high: int | None) -> _Piece:
    if (low, high) == (1, 1) or not piece.text:
        return piece
    if high is None:
        times = {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    else:
        times = "?" if (low, high) == (0, 1) else f"{{{low},{high}}}"
    return _checked(_grouped(piece) + times, "sequence")


def _grouped(piece: _Piece) -> str:
    return piece.text if piece.kind == "group" else f"(?:{piece.text})"


def _checked(text: str, kind: Literal["sequence", "choice"]) -> _Piece:
    if len(text) > MAX_PATTERN_CHARS:
        raise LarkError(1, f"with all rules put in, the grammar is longer than {MAX_PATTERN_CHARS} characters")
    return _Piece(text, kind)
