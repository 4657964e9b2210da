"""The families, and the choice of one for a model."""

from __future__ import annotations

from typing import NamedTuple

from interlock.errors import InterlockError
from interlock.families import generic, qwen3
from interlock.families.base import ModelFamily
from interlock.families.wire.quirks import shows_call
from interlock.families.wire.spell import spell_calls
from interlock.families.wire.template import ChatTemplate
from interlock.tokenization.description import ModelDescription

FAMILIES: tuple[ModelFamily, ...] = (qwen3.FAMILY, generic.FAMILY)

_BY_NAME = {name: family for family in FAMILIES for name in (family.name, *family.aliases)}
_NAME = "interlock_probe"
_ARGUMENTS = {"key": "a value"}


class FamilyChoice(NamedTuple):
    """reason: one clause for people that says what decided."""

    family: ModelFamily
    reason: str


def by_name(name: str) -> ModelFamily:
    """The family of this name or alias. Raises ``InterlockError`` (``invalid_value``) that lists the names."""
    family = _BY_NAME.get(name.strip().lower())
    if family is None:
        names = ", ".join(family.name for family in FAMILIES)
        raise InterlockError(
            "invalid_value", f"unknown model family {name!r}; known are {names}", param="family"
        )
    return family


def choose(description: ModelDescription) -> FamilyChoice:
    """The family whose calls the model's own chat template writes; the generic one if there is none.

    Raises ``InterlockError`` (``invalid_value``) if the chat template is malformed.
    """
    if not description.chat_template:
        return FamilyChoice(family=generic.FAMILY, reason="the model brings no chat template")
    template = ChatTemplate(
        description.chat_template, bos_token=description.bos_token, eos_token=description.eos_token
    )
    for family in FAMILIES:
        spelling = spell_calls(family.tool_calls, [(_NAME, dict(_ARGUMENTS))])
        if family.tool_prompt is None and shows_call(template, _NAME, _ARGUMENTS, spelling):
            opener = family.tool_calls.opener
            return FamilyChoice(
                family=family, reason=f"the chat template writes calls as {family.name} does, after {opener}"
            )
    if "tools" in template.source:
        reason = "the chat template writes calls in a form that no family here has"
    else:
        reason = "the chat template shows no tools"
    return FamilyChoice(family=generic.FAMILY, reason=reason)
