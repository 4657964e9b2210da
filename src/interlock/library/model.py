"""What the library knows of a model: its tokenizer, chat template and family. No weights are loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from interlock.api.openai.chat.request import read_chat_call
from interlock.compiling.trial import Trial
from interlock.config import DEFAULT_SCHEMA_LIMITS, GenerationDefaults, PropertyOrder, SchemaLimits, Whitespace
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.documents import NO_DOCUMENTS
from interlock.constraints.providers.registry import create_provider, other_providers
from interlock.constraints.schema import SchemaOptions
from interlock.core.constraint import Choice, ConstraintSpec, Grammar, JsonValue, Node, Regex
from interlock.core.engine import ThinkingBudget
from interlock.core.output_format import GrammarDialect
from interlock.core.tokenizer import Tokenizer
from interlock.families import registry
from interlock.families.wire.render import PromptRenderer
from interlock.library.constraint import Constraint
from interlock.library.schemas import schema_of, tools_of
from interlock.library.turn import Turn
from interlock.resolve.profile import ModelProfile
from interlock.resolve.resolve import resolve
from interlock.serving.processor import AnswerReader
from interlock.tokenization.description import ModelDescription
from interlock.tokenization.load import describe

_NO_LIMIT = 1 << 20  # tokens of context, of a model that does not say
_MAX_NESTING = 200
_CACHE_BYTES = 256 * 1024 * 1024


class Model:
    """Makes prompts, constraints and parsers for one model. Thread-safe.

    The first constraint takes seconds longer, since the vocabulary is made ready for it. There is no limit of time or
    memory on compiling but the grammar engine's own: the server compiles strangers' schemas in processes that it can
    kill, a library cannot.
    """

    def __init__(
        self,
        description: ModelDescription,
        *,
        family: str | None = None,
        defaults: GenerationDefaults | None = None,
        documents: Mapping[str, str] = NO_DOCUMENTS,
        schema_limits: SchemaLimits = DEFAULT_SCHEMA_LIMITS,
    ) -> None:
        self._documents = documents
        self._schema_limits = schema_limits
        self._family = registry.by_name(family) if family else registry.choose(description).family
        self._profile = ModelProfile(
            family=self._family,
            tokenizer=description.tokenizer,
            renderer=PromptRenderer(self._family, description),
            defaults=defaults or GenerationDefaults(),
            context_tokens=description.context_tokens or _NO_LIMIT,
            longest_token=max(map(len, description.tokenizer.vocabulary.tokens), default=1),
        )

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        family: str | None = None,
        defaults: GenerationDefaults | None = None,
        documents: Mapping[str, str] = NO_DOCUMENTS,
        schema_limits: SchemaLimits = DEFAULT_SCHEMA_LIMITS,
    ) -> Model:
        """path: a Hugging Face folder, a ``tokenizer.json`` or a GGUF file. family: the way calls and thoughts are
        written, by default chosen by the chat template. documents: schemas that ``$ref`` may name, JSON text by URI.
        schema_limits: how far a schema may grow, see docs/json-schema.md. Raises ``InterlockError``."""
        return cls(
            describe(Path(path)),
            family=family,
            defaults=defaults,
            documents=documents,
            schema_limits=schema_limits,
        )

    @property
    def family(self) -> str:
        return self._family.name

    @property
    def tokenizer(self) -> Tokenizer:
        return self._profile.tokenizer

    def turn(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None = None,
        response_format: Any = None,
        **request: Any,
    ) -> Turn:
        """The turn that a chat completion request asks for, read and resolved as the server does it.

        messages, and any other field of the request (``tool_choice``, ``structured_outputs``, ``max_tokens``, ...): as in
        docs/api.md. tools: as there, or functions, Pydantic models, dataclasses. response_format: as there, or a type.
        Raises the ``InterlockError`` that the server would answer with.
        """
        body = dict(request, model="", messages=list(messages))
        if tools is not None:
            body["tools"] = tools_of(tools)
        if response_format is not None:
            body["response_format"] = _response_format(response_format)
        call = read_chat_call(json.dumps(body).encode(), request_id="", max_nesting=_MAX_NESTING)
        resolved = resolve(call.request, self._profile)
        constraint = None
        if resolved.spec is not None:
            constraint = self._compile(resolved.spec, resolved.engine_request.thinking)
        return Turn(resolved, constraint, self.tokenizer.vocabulary, self._reader)

    def json_schema(
        self,
        schema: Any,
        *,
        open_objects: bool = False,
        property_order: PropertyOrder = "declared",
        whitespace: Whitespace = "fixed",
        relaxed: bool = False,
    ) -> Constraint:
        """JSON that is valid against ``schema`` (see ``schema_of``), and nothing else. The options: see docs/json-schema.md."""
        return self._compile_node(
            JsonValue(
                schema=schema_of(schema),
                open_objects=open_objects,
                property_order=property_order,
                flexible_whitespace=whitespace == "flexible",
                relaxed=relaxed,
            )
        )

    def regex(self, pattern: str) -> Constraint:
        """Text that matches ``pattern`` as a whole (Rust regex syntax)."""
        return self._compile_node(Regex(pattern))

    def grammar(self, source: str, dialect: GrammarDialect = "lark") -> Constraint:
        """Text that is derived from a grammar."""
        return self._compile_node(Grammar(source, dialect))

    def choice(self, options: Sequence[str]) -> Constraint:
        """Exactly one of ``options``."""
        return self._compile_node(Choice(tuple(options)))

    def _compile_node(self, node: Node) -> Constraint:
        return self._compile(ConstraintSpec(root=node), None)

    def _compile(self, spec: ConstraintSpec, thinking: ThinkingBudget | None) -> Constraint:
        lowered = self._trial.run(spec)
        return Constraint(
            grammar=self._compiler.prepare(lowered).result(),
            vocabulary=self.tokenizer.vocabulary,
            notes=lowered.notes,
            unenforced=lowered.unenforced,
            thinking=thinking,
        )

    @cached_property
    def _trial(self) -> Trial:
        options = SchemaOptions(guards=True, limits=self._schema_limits)
        return Trial(self.tokenizer.special_tokens, self._documents, options)

    @cached_property
    def _compiler(self) -> GrammarCompiler:
        return GrammarCompiler(
            create_provider("llguidance", self.tokenizer),
            GrammarCache(_CACHE_BYTES),
            others=other_providers(self.tokenizer),
        )

    @cached_property
    def _reader(self) -> AnswerReader:
        return AnswerReader(self._family, self.tokenizer)


def _response_format(given: Any) -> Any:
    if isinstance(given, Mapping):
        return given
    schema = {"name": "answer", "schema": json.loads(schema_of(given))}
    return {"type": "json_schema", "json_schema": schema}
