"""What the bodies of all endpoints are made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, WithJsonSchema

from interlock.api.json_body import JsonText
from interlock.core.sampling import LogprobsOf

# Wide enough for everything, narrow enough for every encoding below.
Int = Annotated[int, Field(ge=-(2**63), lt=2**64)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Schema = Annotated[InstanceOf[JsonText], WithJsonSchema({})]


class Wire(BaseModel):
    """A number in a string is no number. Unknown keys are kept to be reported; see ``fields.ignored``.
    Absent and ``null`` are the same."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


class WireSampling(Wire):
    """How tokens are chosen and what of them is shown: the same names on every endpoint that generates, OpenAI's and
    those that vLLM gives them."""

    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Int | None = None
    min_p: Number | None = None
    typical_p: Number | None = None
    frequency_penalty: Number | None = None
    presence_penalty: Number | None = None
    repetition_penalty: Number | None = None
    logit_bias: dict[str, Number] | None = None
    bad_words: list[str] | None = None
    allowed_token_ids: list[Int] | None = None
    min_tokens: Int | None = None
    ignore_eos: bool | None = None
    stop_token_ids: list[Int] | None = None
    seed: Int | None = None
    include_stop_str_in_output: bool | None = None
    skip_special_tokens: bool | None = None


class WireSchedule(Wire):
    """When a request runs and how long it may take; Interlock's own on every endpoint that generates. priority: higher
    goes first. timeout: seconds."""

    priority: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    timeout: Annotated[Number, Field(gt=0)] | None = None


class WireInterlock(Wire):
    """Our own options, on every endpoint that takes a schema; see ``core.request``: ``JsonPolicy``,
    ``ReportOptions``. logprobs: which distribution those that the request asks for are of."""

    model_config = ConfigDict(extra="forbid")

    open_objects: bool | None = None
    property_order: Literal["declared", "any"] | None = None
    whitespace: Literal["fixed", "flexible"] | None = None
    schema_mode: Literal["exact", "relaxed"] | None = None
    close_on_length: Literal["off", "answers", "all"] | None = None
    logprobs: LogprobsOf | None = None
    timings: bool | None = None
    trace: bool | None = None
