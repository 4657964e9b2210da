"""Options for the limits that refusals name; see ``config``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import click

from interlock.config import CompileConfig, SchemaLimits

_Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def _limit(limit: dataclasses.Field[Any]) -> _Option:
    positive = click.IntRange(1) if isinstance(limit.default, int) else click.FloatRange(0, min_open=True)
    option, text = limit.metadata["option"], limit.metadata["help"]
    return click.option(option, limit.name, default=limit.default, show_default=True, type=positive, help=text)


SCHEMA_LIMITS: Final[tuple[_Option, ...]] = tuple(map(_limit, dataclasses.fields(SchemaLimits)))
COMPILE_TIMEOUT: Final = next(
    _limit(item) for item in dataclasses.fields(CompileConfig) if item.name == "timeout_s"
)


def schema_limits(options: dict[str, Any]) -> SchemaLimits:
    """What the options of ``SCHEMA_LIMITS`` say."""
    return SchemaLimits(**{limit.name: options[limit.name] for limit in dataclasses.fields(SchemaLimits)})
