"""Collects the rules and terminals of one grammar; equal ones are written once."""

from __future__ import annotations

import re

from interlock.constraints.schema.problems import RefusedError
from interlock.constraints.schema.text.emit import terminal
from interlock.constraints.schema.text.json_spelling import JsonSpelling
from interlock.constraints.schema.text.lang import ANY

_QUOTE = JsonSpelling().opening
_ANY_TEXT = terminal(ANY, JsonSpelling())[:-1]  # a regex up to its end, or to what follows the closing quote
_ANY_BODY = _ANY_TEXT[len(f"/{_QUOTE}") : -len(_QUOTE)]


_NOBODY = ("", "")


MAX_RULES = 20_000
MAX_GRAMMAR_CHARS = 8_000_000


class Symbols(str):
    """Grammar symbols that stand where a terminal expression could: special tokens, several symbols, or none."""

    __slots__ = ()


class Writer:
    def __init__(self, prefix: str) -> None:
        self._terminal_prefix = f"{prefix.upper()}_T"
        self._rule_prefix = f"{prefix}_r"
        self._rules: dict[str, str] = {}  # name to text
        self._same: dict[str, str] = {}  # rules that are only another name
        self._by_body: dict[str, str] = {}
        self._num_names = 0
        self._newest = _NOBODY  # the rule that was written last, while it stands in no other one, and its key
        self._terminals: dict[str, str] = {}  # expression to name
        self._chars = 0

    def terminal(self, expression: str) -> str:
        if isinstance(expression, Symbols):
            return expression
        if expression[0] == '"':  # cheaper in place than by name
            return expression if self._rule_prefix not in expression else expression.replace("_", "\\u005f")
        name = self._terminals.get(expression)
        if name is None:
            name = self._terminals[expression] = f"{self._terminal_prefix}{len(self._terminals)}"
            self._count(len(expression))
        return name

    def reserve(self) -> str:
        """The name of a rule that is defined later."""
        name = f"{self._rule_prefix}{self._num_names}"
        self._num_names += 1
        self._rules[name] = ""
        return name

    def define(self, name: str, body: str, *, parametric: bool = False) -> None:
        newest, self._newest = self._newest, _NOBODY
        if not body:  # it would match the empty text
            raise RefusedError("a part of the schema admits nothing, which was not foreseen")
        if body in self._rules and self.resolve(body) != name:
            if body == newest[0]:
                self._rename(newest, name)
            else:
                self._same[name] = body
            return
        self._rules[name] = f"{name}{'::_' if parametric else ''}: {body}"
        self._count(len(body))

    def _rename(self, rule: tuple[str, str], name: str) -> None:
        """A rule that stands in no other one yet gets a name that others may have written already."""
        old, key = rule
        self._rules[name] = name + self._rules.pop(old)[len(old) :]
        self._by_body[key] = name

    def rule(self, body: str) -> str:
        """A rule with this body: an old one if there is one."""
        name = self._by_body.get(body)
        if name is None:
            name = self._by_body[body] = self.reserve()
            self.define(name, body)
            self._newest = name, body
        elif name == self._newest[0]:
            self._newest = _NOBODY
        return name

    def group(self, bodies: dict[str, tuple[str, bool]], entry: str) -> str:
        """Rules that refer to each other by placeholders (``@name@``; there is no other ``@`` in a body). ``bodies``:
        placeholder to (body, parametric). Returns the name of ``entry``; a group that was written before is used again."""
        key = "\n".join([f"{name}:{body}" for name, (body, _) in bodies.items()])
        known = self._by_body.get(key)
        if known is not None:
            self._newest = _NOBODY
            return known
        names = {name: self.reserve() for name in bodies}
        for name, (body, parametric) in bodies.items():
            parts = body.split("@")
            parts[1::2] = [names[placeholder] for placeholder in parts[1::2]]
            self.define(names[name], "".join(parts), parametric=parametric)
        self._by_body[key] = names[entry]
        if not any(f"@{entry}@" in body for body, _ in bodies.values()):
            self._newest = names[entry], key
        return names[entry]

    def resolve(self, name: str) -> str:
        """The rule that ``name`` stands for."""
        while name in self._same:
            name = self._same[name]
        return name

    def text(self) -> str:
        rules = "\n".join(filter(None, self._rules.values()))
        if self._same:
            names = {name: self.resolve(name) for name in self._same}
            found = rf"\b{re.escape(self._rule_prefix)}\d+"
            rules = re.sub(found, lambda name: names.get(name[0], name[0]), rules)
        terminals = [f"{name}: {expression}" for expression, name in self._terminals.items()]
        return f"{self._tight(rules)}\n{self._shared(terminals)}"

    def _tight(self, rules: str) -> str:
        """Without blanks that nobody needs: the engine's reader of grammars takes as long for one as for a symbol. None
        of these signs is in a literal."""
        blank, name = f'" {self._rule_prefix}', f'"{self._rule_prefix}'
        return rules.replace(" | ", "|").replace(" %if ", "%if ").replace(blank, name)

    def _shared(self, terminals: list[str]) -> str:
        """The text of ``terminals``. What is any text in several of them is a terminal of its own: the engine takes its
        time to read that regex."""
        text = "".join(f"{terminal}\n" for terminal in terminals)
        if text.count(_ANY_TEXT) < 2:
            return text
        name = f"{self._terminal_prefix}{len(terminals)}"
        opening, closing = f"/{_QUOTE}/", f"/{_QUOTE}"
        return f"{text.replace(_ANY_TEXT, f'{opening} {name} {closing}')}{name}: /{_ANY_BODY}/\n"

    def _count(self, size: int) -> None:
        self._chars += size + 16
        if self._chars > MAX_GRAMMAR_CHARS or len(self._rules) > MAX_RULES:
            raise RefusedError(
                f"the schema is too complex: its grammar has more than {MAX_RULES} rules or {MAX_GRAMMAR_CHARS} characters",
                too_complex=True,
            )
