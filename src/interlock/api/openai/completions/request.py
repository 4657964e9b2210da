"""A decoded body to one ``GenerateRequest`` for each prompt and answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from interlock.api.fields import ignored, ignored_header, refuse_unsupported
from interlock.api.json_body import decode_object
from interlock.api.openai.completions.prompt_only import NUM_COMPUTED
from interlock.api.openai.completions.wire import KEPT_AS_TEXT, REFUSED, WireCompletionsRequest
from interlock.api.openai.generation import read_include_usage, read_num_answers
from interlock.api.openai.output_format import read_output_format, read_policy
from interlock.api.openai.prompt_logprobs import read_prompt_logprobs
from interlock.api.places import Places
from interlock.api.reading import read_reports, read_stop, validated
from interlock.api.sampling import read_sampling, read_text_options
from interlock.core.request import GenerateRequest
from interlock.errors import InterlockError
from interlock.serving.fan_out import fan_out

MAX_ANSWERS = 64
DEFAULT_MAX_TOKENS = 16  # OpenAI's

# Names of chat completions to those of this endpoint.
_NAMES = ((r"^messages$", "prompt"), (r"^top_logprobs$", "logprobs"))

Prompt = str | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionsCall:
    """requests: in the order of the answer's choices, ``n`` for each prompt. is_prompt_only: see ``prompt_only``.
    ignored: value of the response header."""

    id: str
    requests: tuple[GenerateRequest, ...]
    n: int
    echo: bool
    is_prompt_only: bool
    prompt_logprobs: bool
    stream: bool
    include_usage: bool
    ignored: str

    def locate(self, error: InterlockError) -> InterlockError:
        return Places((), _NAMES).of(error)

    @property
    def model(self) -> str:
        return self.requests[0].model

    @property
    def logprobs(self) -> bool:
        return self.requests[0].sampling.logprobs is not None


def read_completions_call(body: bytes, *, request_id: str, max_nesting: int) -> CompletionsCall:
    """Raises ``InterlockError`` with ``param`` set for everything the wire format can show to be wrong."""
    data = decode_object(body, KEPT_AS_TEXT, max_nesting=max_nesting)
    refuse_unsupported(data, REFUSED)
    wire = validated(WireCompletionsRequest, data)
    prompts = read_prompts(wire.prompt)
    is_prompt_only = bool(wire.echo) and wire.max_tokens == 0
    n = read_num_answers(wire, MAX_ANSWERS // len(prompts))
    request = GenerateRequest(
        request_id=request_id,
        model=wire.model,
        output_format=read_output_format(wire, max_nesting=max_nesting),
        json_policy=read_policy(wire),
        reports=read_reports(wire.interlock, has_trace=True),
        sampling=read_sampling(wire, wire.logprobs, wire.interlock, _prompt_logprobs(wire)),
        text=read_text_options(wire),
        max_tokens=NUM_COMPUTED if is_prompt_only else _max_tokens(wire),
        stop=read_stop(wire.stop),
        priority=wire.priority or 0,
        timeout_s=wire.timeout,
    )
    requests = [
        one
        for index, prompt in enumerate(prompts)
        for one in fan_out(replace(request, request_id=f"{request_id}-{index}", prompt=prompt), n)
    ]
    return CompletionsCall(
        id=request_id,
        requests=tuple(requests),
        n=n,
        echo=bool(wire.echo),
        is_prompt_only=is_prompt_only,
        prompt_logprobs=wire.prompt_logprobs is not None,
        stream=bool(wire.stream),
        include_usage=read_include_usage(wire),
        ignored=ignored_header(ignored(wire, REFUSED)),
    )


def _max_tokens(wire: WireCompletionsRequest) -> int:
    return DEFAULT_MAX_TOKENS if wire.max_tokens is None else wire.max_tokens


def read_prompts(prompt: str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]]) -> list[Prompt]:
    """One prompt or several, each text or token ids. Raises ``invalid_value``."""
    if isinstance(prompt, str):
        return [prompt]
    found: list[Prompt] = []
    ids: list[int] = []
    for item in prompt:
        if isinstance(item, int):
            ids.append(item)
        else:
            found.append(item if isinstance(item, str) else tuple(item))
    prompts: list[Prompt] = [tuple(ids)] if ids else found
    if not 1 <= len(prompts) <= MAX_ANSWERS:
        raise InterlockError(
            "invalid_value", f"prompt must have between 1 and {MAX_ANSWERS} prompts", param="prompt"
        )
    return prompts


def _prompt_logprobs(wire: WireCompletionsRequest) -> int | None:
    """Of those that are asked for by name, and those of an echo, the more."""
    asked = read_prompt_logprobs(wire)
    echoed = wire.logprobs if wire.echo else None
    return max((one for one in (asked, echoed) if one is not None), default=None)
