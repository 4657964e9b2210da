"""A model being served: everything the API process holds of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from interlock.config import GenerationDefaults
from interlock.constraints.documents import NO_DOCUMENTS
from interlock.core.constraint import ConstraintSpec, JsonValue, Lowering
from interlock.core.engine import Engine
from interlock.core.tokenizer import Tokenizer
from interlock.families.base import ModelFamily
from interlock.families.wire.render import PromptRenderer
from interlock.resolve.profile import ModelProfile
from interlock.serving.processor import AnswerReader


class Lowerer(Protocol):
    """The part of the compile pool that serving uses."""

    async def start(self) -> None: ...

    async def lower(self, spec: ConstraintSpec, documents: Mapping[str, str] = NO_DOCUMENTS) -> Lowering:
        """Lower and try out ``spec``. documents: schemas that references may name, for this call. Raises the
        ``InterlockError`` a client should see."""
        ...

    async def check(
        self, value: JsonValue, instances: Sequence[str], documents: Mapping[str, str]
    ) -> dict[str, Any]:
        """See ``constraints.schema_report``."""
        ...

    async def validate(self, pairs: Sequence[tuple[str, str]]) -> tuple[bool | None, ...]:
        """For each schema and document: is it valid? ``None``: nobody can tell."""
        ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """name: the model's name in the API. reader: reads the model's answers."""

    name: str
    family: ModelFamily
    tokenizer: Tokenizer
    renderer: PromptRenderer
    engine: Engine
    compile_pool: Lowerer
    defaults: GenerationDefaults = GenerationDefaults()
    longest_token: int = field(init=False)
    reader: AnswerReader = field(init=False)

    def __post_init__(self) -> None:
        # once: it looks at every token
        longest = max(map(len, self.tokenizer.vocabulary.tokens), default=0)
        object.__setattr__(self, "longest_token", max(longest, 1))
        object.__setattr__(self, "reader", AnswerReader(self.family, self.tokenizer))

    def profile(self) -> ModelProfile:
        """What resolving reads. Valid once the engine was ready."""
        return ModelProfile(
            family=self.family,
            tokenizer=self.tokenizer,
            renderer=self.renderer,
            defaults=self.defaults,
            context_tokens=self.engine.max_context_tokens,
            longest_token=self.longest_token,
            engine=self.engine.traits,
        )
