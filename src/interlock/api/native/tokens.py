"""``POST /tokenize`` and ``POST /detokenize``."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from interlock.api.context import ApiContext
from interlock.api.endpoint import read_call
from interlock.api.errors import json_response
from interlock.api.fields import Refused, refuse_unsupported
from interlock.api.json_body import decode_object
from interlock.api.reading import validated
from interlock.api.wire import Int, Wire
from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError
from interlock.resolve.text import require_unicode

REFUSED = {
    "messages": Refused((), "use /v1/chat/completions/render"),
    "add_generation_prompt": Refused((True,)),
}


class WireTokenize(Wire):
    """special_tokens: spellings of special tokens in the prompt act (else they are text). add_special_tokens: put
    the model's first token in front, where it has one. with_pieces: also each token's text."""

    prompt: str
    model: str | None = None
    special_tokens: bool | None = None
    add_special_tokens: bool | None = None
    with_pieces: bool | None = None


class WireDetokenize(Wire):
    tokens: list[Int]
    model: str | None = None


def router(context: ApiContext) -> APIRouter:
    routes = APIRouter()

    def tokenizer(model: str | None) -> Tokenizer:
        return context.service.tokenizer(context.service.model_names[0] if model is None else model)

    @routes.post("/tokenize")
    async def tokenize(request: Request) -> Response:
        wire = await read_call(request, context, _read_tokenize)
        return json_response(_tokenized(wire, tokenizer(wire.model)))

    @routes.post("/detokenize")
    async def detokenize(request: Request) -> Response:
        wire = await read_call(request, context, _read_detokenize)
        used = tokenizer(wire.model)
        size = used.vocabulary.size
        for index, token_id in enumerate(wire.tokens):
            if not 0 <= token_id < size:
                param = f"tokens[{index}]"
                raise InterlockError(
                    "invalid_value", f"{param} is {token_id}, the vocabulary has {size} tokens", param=param
                )
        return json_response({"prompt": used.decode(wire.tokens)})

    return routes


def _read_tokenize(body: bytes, max_nesting: int) -> WireTokenize:
    data = decode_object(body, None, max_nesting=max_nesting)
    refuse_unsupported(data, REFUSED)
    wire = validated(WireTokenize, data)
    require_unicode(wire.prompt, code="invalid_value", param="prompt")
    return wire


def _read_detokenize(body: bytes, max_nesting: int) -> WireDetokenize:
    return validated(WireDetokenize, decode_object(body, None, max_nesting=max_nesting))


def _tokenized(wire: WireTokenize, tokenizer: Tokenizer) -> dict[str, Any]:
    encode = tokenizer.encode_text if wire.special_tokens is False else tokenizer.encode
    ids, bos = encode(wire.prompt), tokenizer.vocabulary.bos_id
    if wire.add_special_tokens is not False and bos is not None and ids[:1] != [bos]:
        ids = [bos, *ids]
    out: dict[str, Any] = {"tokens": ids, "count": len(ids)}
    if wire.with_pieces:
        out["pieces"] = [tokenizer.decode([token_id]) for token_id in ids]
    return out
