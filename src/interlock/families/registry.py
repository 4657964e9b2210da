"""Families by name, and the choice of one for a model."""

from __future__ import annotations

from typing import NamedTuple

from interlock.errors import InterlockError
from interlock.families import generic
from interlock.families.base import ModelFamily
from interlock.families.catalog import FAMILIES
from interlock.families.derive import derived_family
from interlock.families.wire.probe import PROBE_CALL, PROBE_ID, probe_turn
from interlock.families.wire.spell import spell_call, spell_calls
from interlock.families.wire.template import ChatTemplate
from interlock.tokenization.description import ModelDescription

__all__ = ["FAMILIES", "FamilyChoice", "by_name", "choose"]


class FamilyChoice(NamedTuple):
    """reason: one clause for people that says what decided."""

    family: ModelFamily
    reason: str


def by_name(name: str) -> ModelFamily:
    """The family of this name or alias. Raises ``InterlockError`` (``invalid_value``) that lists the names."""
    family = _BY_NAME.get(_plain(name))
    if family is None:
        names = ", ".join(family.name for family in FAMILIES)
        raise InterlockError(
            "invalid_value", f"unknown model family {name!r}; known are {names}", param="family"
        )
    return family


def choose(description: ModelDescription) -> FamilyChoice:
    """The family whose calls the model's own chat template writes. Where the template writes none, the one that
    the model's architecture names; where it writes calls of an unknown form, that form if it can be read off;
    else the generic family.

    Raises ``InterlockError`` (``invalid_value``) if the chat template is malformed.
    """
    by_architecture = _of_architecture(description.architecture)
    if not description.chat_template:
        if by_architecture is not None and by_architecture.template is not None:
            return FamilyChoice(by_architecture, f"the model's architecture is {description.architecture}")
        return FamilyChoice(generic.FAMILY, "the model brings no chat template")
    template = ChatTemplate(
        description.chat_template, bos_token=description.bos_token, eos_token=description.eos_token
    )
    turn, derived = probe_turn(template), None
    if turn is not None:
        fitting = [family for family in FAMILIES if _writes(family, turn.text)]
        derived = derived_family(turn, template)
        if fitting and not (derived is not None and _is_bare(fitting[0])):
            family = by_architecture if by_architecture in fitting else _best(fitting, template.source)
            opener = family.tool_calls.opener or family.tool_calls.bare
            return FamilyChoice(family, f"the chat template writes calls as {family.name} does, after {opener}")
    shows_tools = "tools" in template.source
    if by_architecture is not None and (shows_tools or by_architecture.template is not None):
        return FamilyChoice(by_architecture, f"the model's architecture is {description.architecture}")
    if derived is not None:
        return FamilyChoice(
            derived, f"calls were read off the chat template, after {derived.tool_calls.opener}"
        )
    spoken_of = _spoken_of(template.source) if shows_tools else None
    if spoken_of is not None:
        return FamilyChoice(spoken_of, f"the chat template speaks of {spoken_of.tool_calls.opener}")
    if shows_tools:
        return FamilyChoice(generic.FAMILY, "the chat template writes calls in a form that no family here has")
    return FamilyChoice(generic.FAMILY, "the chat template shows no tools")


def _writes(family: ModelFamily, text: str) -> bool:
    """Whether ``text`` holds the probe call in a form of ``family``."""
    if family.tool_prompt is not None:
        return False
    syntax, (name, arguments) = family.tool_calls, PROBE_CALL
    others = filter(None, (*syntax.variants, syntax.bare_call))
    spellings = [spell_calls(syntax, [(name, dict(arguments))], [PROBE_ID])]
    spellings += [spell_call(syntax, name, dict(arguments), 0, PROBE_ID, form) for form in others]
    if syntax.call_opener and syntax.opener in text:
        spellings.append(spell_call(syntax, name, dict(arguments), 0, PROBE_ID))
    return any(spelling.strip() in text for spelling in spellings)


def _spoken_of(source: str) -> ModelFamily | None:
    """The family whose opener is in the template's text."""
    found = [family for family in FAMILIES if family.tool_prompt is None and family.tool_calls.opener]
    found = [family for family in found if family.tool_calls.opener in source]
    return max(found, key=lambda family: len(family.tool_calls.opener), default=None)


def _is_bare(family: ModelFamily) -> bool:
    """Calls are written without a marker, so what is written as they are may be more."""
    return not (family.tool_calls.opener and family.tool_calls.writes_marks)


def _best(fitting: list[ModelFamily], source: str) -> ModelFamily:
    """The first that thinks as the template does, else the first."""
    thinking = [family for family in fitting if family.reasoning and family.reasoning.close in source]
    return (thinking or fitting)[0]


def _of_architecture(architecture: str) -> ModelFamily | None:
    return next((family for family in FAMILIES if architecture and architecture in family.architectures), None)


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(".", "_")


_BY_NAME = {_plain(name): family for family in FAMILIES for name in (family.name, *family.aliases)}
