"""Which keyword a name that is none may have been meant to be."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.constraints.schema.dialects import Dialect
from interlock.constraints.schema.keywords import BY_DIALECT

_LONGEST = 40
_SHORT = 5  # letters; of shorter keywords every other word is a neighbour


def meant_keyword(name: str, dialect: Dialect) -> str | None:
    """The keyword that differs from ``name`` in case, a sign in front, or one letter too many, too few, wrong or
    exchanged with the next. Annotations are not worth a guess. A few look-ups, whatever the name is."""
    if len(name) > _LONGEST or name.startswith("x-"):
        return None
    plain = _plain(name)
    known = _KNOWN[dialect]
    return next((known[form] for form in (plain, *_shortened(plain)) if form in known), None)


def _plain(name: str) -> str:
    return name.lower().lstrip("$").replace("_", "").replace("-", "")


def _shortened(text: str) -> Iterator[str]:
    return (text[:index] + text[index + 1 :] for index in range(len(text)))


def _forms(dialect: Dialect) -> dict[str, str]:
    names = [name for name, row in BY_DIALECT[dialect].items() if row.holder != "annotation"]
    forms = {_plain(name): name for name in names if len(name) > 2}
    for name in names:
        if len(_plain(name)) >= _SHORT:
            for form in _shortened(_plain(name)):
                forms.setdefault(form, name)
    return forms


_KNOWN = {dialect: _forms(dialect) for dialect in Dialect}
