"""What vLLM does not have is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams, TokenLimits
from interlock.errors import InterlockError
from interlock.remote.refused import check_request

STOP_ID = 99
CONSTRAINT = LoweredConstraint(provider="llguidance", grammar='start: "a"', key="a")
SCORES = SamplingParams(logprobs=1)
OWN_SCORES = SamplingParams(logprobs=1, logprobs_of="model")


def check(**fields: Any) -> None:
    plain = {"sampling": SamplingParams(), "stop_ids": (STOP_ID,)}
    check_request(
        EngineRequest(request_id="r", prompt_ids=(1,), max_tokens=1, **(plain | fields)), frozenset({STOP_ID})
    )


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"trace": True}, "interlock.trace"),
        ({"priority": 1}, "priority"),
        ({"sampling": SCORES, "constraint": CONSTRAINT}, "logprobs"),
        ({"sampling": SCORES, "limits": TokenLimits(allowed=(1,))}, "logprobs"),
        ({"sampling": SCORES, "limits": TokenLimits(min_tokens=2)}, "logprobs"),
        ({"sampling": SamplingParams(logprobs=1, presence_penalty=1.0)}, "logprobs"),
        ({"sampling": SamplingParams(typical_p=0.5)}, "typical_p"),
        ({"sampling": SamplingParams(prompt_logprobs=1)}, "prompt_logprobs"),
        ({"limits": TokenLimits(banned=((1,),))}, "bad_words"),
        ({"limits": TokenLimits(suppressed=(STOP_ID,))}, "ignore_eos"),
        ({"limits": TokenLimits(min_tokens=1), "constraint": CONSTRAINT}, "min_tokens"),
        ({"limits": TokenLimits(allowed=(1,)), "constraint": CONSTRAINT}, "allowed_token_ids"),
        ({"stop_ids": (65,), "constraint": CONSTRAINT}, "stop_token_ids"),
    ],
)
def test_what_it_does_not_have_is_refused(fields: dict[str, Any], param: str):
    with pytest.raises(InterlockError) as refused:
        check(**fields)
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", param)


def test_what_it_has_is_not():
    check(sampling=SCORES, stop_ids=(65,))
    check(sampling=OWN_SCORES, stop_ids=(65,), limits=TokenLimits(min_tokens=2, allowed=(1,)))
    check(sampling=OWN_SCORES, constraint=CONSTRAINT)
    check(constraint=CONSTRAINT)
