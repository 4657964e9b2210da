"""Lower a spec and try the native compile, over a vocabulary of bytes and the model's special tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from interlock.constraints import gbnf
from interlock.constraints.documents import NO_DOCUMENTS
from interlock.constraints.engine_trial import own_words, refusal
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Provider
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.schema import GUARDED, EngineTrial, SchemaOptions, load_documents
from interlock.constraints.schema_report import schema_report
from interlock.constraints.validator import is_valid
from interlock.constraints.walk import walk
from interlock.core.constraint import (
    Choice,
    ConstraintSpec,
    Grammar,
    JsonValue,
    LoweredConstraint,
    Node,
    Regex,
)
from interlock.core.tokenizer import Vocabulary
from interlock.errors import InterlockError, Problem, together
from interlock.tokenization.byte_tokenizer import byte_tokenizer


class Trial:
    """Lowering for one model. special_tokens: spelling to id, as in the model's vocabulary.
    documents: schemas that references may name, by URI, as JSON text. options: of schemas, beside documents."""

    def __init__(
        self,
        special_tokens: Mapping[str, int],
        documents: Mapping[str, str] = NO_DOCUMENTS,
        options: SchemaOptions = GUARDED,
    ) -> None:
        self._special_tokens = dict(special_tokens)
        self._texts = dict(documents)
        self._options = replace(options, documents=load_documents(documents))
        self._provider = LLGuidanceProvider(TrialTokenizer(special_tokens))

    def run(self, spec: ConstraintSpec, documents: Mapping[str, str] = NO_DOCUMENTS) -> LoweredConstraint:
        """The lowered spec, known to compile. documents: more of them. Raises ``InterlockError`` that names the part
        at fault.

        Regexes and grammars are tried alone too: one that matches nothing shows only at its own start.
        """
        if documents:
            return Trial(self._special_tokens, {**self._texts, **documents}, self._options).run(spec)
        lowered = self._lower(spec)
        if lowered.provider != self._provider.name:
            return lowered  # what such an engine says to it shows where it runs
        for node in dict.fromkeys(walk(spec.root)):
            if isinstance(node, Regex | Grammar):
                self._compile(self._lower(ConstraintSpec(root=node)), node)
        try:
            self._compile(lowered, spec.root)
        except InterlockError:
            if not any(isinstance(node, JsonValue) and node.relaxed for node in walk(spec.root)):
                self._blame(spec)
                raise
            lowered = self._lower(spec, partial(refusal, self._provider))
            self._compile(lowered, spec.root)
        return lowered

    def check(
        self, spec: ConstraintSpec, instances: Sequence[str], documents: Mapping[str, str]
    ) -> dict[str, Any]:
        """``schema_report`` of a spec whose root is a ``JsonValue``. documents: more of them, by URI."""
        assert isinstance(spec.root, JsonValue)
        more = {**self._texts, **documents}
        return schema_report(
            spec.root, self._check_provider, byte_tokenizer(), instances, more, options=self._options
        )

    def is_valid(self, schema: str, document: str) -> bool | None:
        """See ``validator.is_valid``."""
        return is_valid(schema, document, self._texts)

    @cached_property
    def _check_provider(self) -> Provider:
        return LLGuidanceProvider(byte_tokenizer())

    def _blame(self, spec: ConstraintSpec) -> None:
        """Raise the errors of the parts that do not compile alone either."""
        found = []
        for node in dict.fromkeys(walk(spec.root)):
            if isinstance(node, JsonValue | Choice):
                try:
                    self._compile(self._lower(ConstraintSpec(root=node)), node)
                except InterlockError as error:
                    found.append(error)
        if found:
            raise together(found)

    def _lower(self, spec: ConstraintSpec, trial: EngineTrial | None = None) -> LoweredConstraint:
        return lower(
            spec,
            self._special_tokens,
            gbnf_to_lark=gbnf.to_lark,
            options=self._options,
            trial=trial,
        )

    def _compile(self, lowered: LoweredConstraint, node: Node) -> None:
        try:
            self._provider.compile(lowered.grammar)
        except InterlockError as error:
            raise _of_node(node, error) from None


class TrialTokenizer:
    """256 bytes, the special tokens at their own ids, and one stop token after them all."""

    def __init__(self, special_tokens: Mapping[str, int]) -> None:
        taken = {token_id: spelling.encode() for spelling, token_id in special_tokens.items()}
        size = max(taken, default=0) + 258
        tokens = [taken.get(token_id, b"") for token_id in range(size)]
        free = (token_id for token_id in range(size - 1) if token_id not in taken)
        self._byte_ids = [next(free) for _ in range(256)]
        for byte, token_id in enumerate(self._byte_ids):
            tokens[token_id] = bytes([byte])
        self._special_tokens = dict(special_tokens)
        self._vocabulary = Vocabulary(
            tokens=tuple(tokens),
            special_ids=frozenset(taken) | {size - 1},
            control_ids=frozenset(taken) | {size - 1},
            stop_ids=(size - 1,),
        )

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def special_tokens(self) -> dict[str, int]:
        return dict(self._special_tokens)

    def encode_text(self, text: str) -> list[int]:
        return [self._byte_ids[byte] for byte in text.encode()]

    def encode(self, text: str) -> list[int]:
        return self.encode_text(text)

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(self._vocabulary.tokens[token_id] for token_id in ids).decode(errors="replace")


def _of_node(node: Node, error: InterlockError) -> InterlockError:
    match node:
        case JsonValue(origin=origin, tool=tool):
            code = "invalid_schema" if error.code == "invalid_grammar" else error.code
            reason = own_words(error.message).replace("the grammar", "the schema")
            problem = Problem(reason=reason, tool=tool)
            return InterlockError(code, reason, param=origin or None, problems=(problem,))
        case Regex(origin=origin):
            code = "invalid_regex" if error.code == "invalid_grammar" else error.code
            return InterlockError(code, own_words(error.message), param=origin or None)
        case Grammar(origin=origin) | Choice(origin=origin):
            return InterlockError(error.code, error.message, param=origin or None)
        case _:
            return error
