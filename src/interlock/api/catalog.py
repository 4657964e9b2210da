"""Every endpoint, once: what the OpenAPI document and the API page are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel

from interlock.api.admin.wire import WireSettings
from interlock.api.anthropic.messages import wire as messages
from interlock.api.fields import RefusedFields
from interlock.api.native.check import REFUSED as CHECK_REFUSED
from interlock.api.native.check import WireCheck
from interlock.api.native.tokens import REFUSED as TOKENIZE_REFUSED
from interlock.api.native.tokens import WireDetokenize, WireTokenize
from interlock.api.ollama import wire as ollama
from interlock.api.ollama.routes import WireShow
from interlock.api.openai.chat.fields import REFUSED as CHAT_REFUSED
from interlock.api.openai.chat.wire import WireChatRequest
from interlock.api.openai.completions import wire as completions
from interlock.api.openai.responses import wire as responses

Method = Literal["get", "post", "put", "delete"]
Group = Literal["OpenAI", "Anthropic", "Ollama", "Interlock", "Operations", "Admin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointEntry:
    """body: type of the request's body. refused: its fields that are refused; refused_inside: those of objects in it,
    by path. streams: media type of a streamed answer."""

    group: Group
    method: Method
    path: str
    summary: str
    body: type[BaseModel] | None = None
    refused: RefusedFields = field(default_factory=dict)
    refused_inside: Mapping[str, RefusedFields] = field(default_factory=dict)
    streams: str | None = None
    answers: str = "application/json"


_SSE = "text/event-stream"
_LINES = "application/x-ndjson"
_OLLAMA_OPTIONS = {"options": ollama.REFUSED_OPTIONS}

ENDPOINTS: tuple[EndpointEntry, ...] = (
    EndpointEntry(
        group="OpenAI",
        method="post",
        path="/v1/chat/completions",
        summary="Answer a conversation",
        body=WireChatRequest,
        refused=CHAT_REFUSED,
        streams=_SSE,
    ),
    EndpointEntry(
        group="Interlock",
        method="post",
        path="/v1/chat/completions/render",
        summary="Show what a chat completion would run: prompt, constraint, tools",
        body=WireChatRequest,
        refused=CHAT_REFUSED,
    ),
    EndpointEntry(
        group="OpenAI",
        method="post",
        path="/v1/completions",
        summary="Go on from prompts, given as text or token ids",
        body=completions.WireCompletionsRequest,
        refused=completions.REFUSED,
        streams=_SSE,
    ),
    EndpointEntry(
        group="OpenAI",
        method="post",
        path="/v1/responses",
        summary="Answer a list of items, or go on from a stored response",
        body=responses.WireResponsesRequest,
        refused=responses.REFUSED,
        refused_inside={"text": responses.REFUSED_IN_TEXT},
        streams=_SSE,
    ),
    EndpointEntry(
        group="OpenAI", method="get", path="/v1/responses/{response_id}", summary="A stored response"
    ),
    EndpointEntry(
        group="OpenAI",
        method="get",
        path="/v1/responses/{response_id}/input_items",
        summary="The input of a stored response",
    ),
    EndpointEntry(
        group="OpenAI", method="delete", path="/v1/responses/{response_id}", summary="Forget a stored response"
    ),
    EndpointEntry(group="OpenAI", method="get", path="/v1/models", summary="The models served"),
    EndpointEntry(group="OpenAI", method="get", path="/v1/models/{name}", summary="One of them"),
    EndpointEntry(
        group="Anthropic",
        method="post",
        path="/v1/messages",
        summary="Answer a conversation",
        body=messages.WireMessagesRequest,
        refused=messages.REFUSED,
        streams=_SSE,
    ),
    EndpointEntry(
        group="Anthropic",
        method="post",
        path="/v1/messages/count_tokens",
        summary="Tokens of a conversation's prompt",
        body=messages.WireCountRequest,
        refused=messages.REFUSED,
    ),
    EndpointEntry(
        group="Ollama",
        method="post",
        path="/api/chat",
        summary="Answer a conversation",
        body=ollama.WireChatRequest,
        refused=ollama.REFUSED,
        refused_inside=_OLLAMA_OPTIONS,
        streams=_LINES,
    ),
    EndpointEntry(
        group="Ollama",
        method="post",
        path="/api/generate",
        summary="Answer one prompt",
        body=ollama.WireGenerateRequest,
        refused=ollama.REFUSED,
        refused_inside=_OLLAMA_OPTIONS,
        streams=_LINES,
    ),
    EndpointEntry(group="Ollama", method="get", path="/api/tags", summary="The models served"),
    EndpointEntry(group="Ollama", method="post", path="/api/show", summary="One of them", body=WireShow),
    EndpointEntry(group="Ollama", method="get", path="/api/version", summary="The server's version"),
    EndpointEntry(
        group="Interlock",
        method="post",
        path="/v1/check",
        summary="Whether tools, schemas and grammars can be held, and what is wrong with them",
        body=WireCheck,
        refused=CHECK_REFUSED,
    ),
    EndpointEntry(
        group="Interlock",
        method="post",
        path="/tokenize",
        summary="Text to token ids",
        body=WireTokenize,
        refused=TOKENIZE_REFUSED,
    ),
    EndpointEntry(
        group="Interlock", method="post", path="/detokenize", summary="Token ids to text", body=WireDetokenize
    ),
    EndpointEntry(group="Operations", method="get", path="/health", summary="200 when requests are served"),
    EndpointEntry(group="Operations", method="get", path="/ready", summary="200 when requests are taken"),
    EndpointEntry(
        group="Operations", method="get", path="/metrics", summary="Prometheus metrics", answers="text/plain"
    ),
    EndpointEntry(group="Operations", method="get", path="/version", summary="The server's version"),
    EndpointEntry(group="Operations", method="get", path="/openapi.json", summary="This list, for machines"),
    EndpointEntry(
        group="Admin", method="get", path="/admin/api/models", summary="Models with phase, family and settings"
    ),
    EndpointEntry(
        group="Admin", method="get", path="/admin/api/models/{name}/settings", summary="The settings of a model"
    ),
    EndpointEntry(
        group="Admin",
        method="put",
        path="/admin/api/models/{name}/settings",
        summary="Change some of them, for new requests; `null` clears one",
        body=WireSettings,
    ),
    EndpointEntry(
        group="Admin",
        method="get",
        path="/admin/api/grammar/parsers",
        summary="What `reasoning_parser` and `family` take",
    ),
    EndpointEntry(group="Admin", method="get", path="/admin/api/requests", summary="What is answered now"),
    EndpointEntry(
        group="Admin", method="post", path="/admin/api/requests/{request_id}/cancel", summary="End an answer"
    ),
    EndpointEntry(
        group="Admin", method="get", path="/admin", summary="The page for operators", answers="text/html"
    ),
    EndpointEntry(
        group="Admin", method="get", path="/admin/static/{name}", summary="Its files", answers="text/*"
    ),
)
