"""What is sent and what is read."""

from __future__ import annotations

import json

import pytest

from interlock.constraints.lowering import lower
from interlock.constraints.providers.registry import create_provider
from interlock.core.constraint import ConstraintSpec, Grammar, LoweredConstraint, Marker, Sequence
from interlock.errors import InterlockError
from interlock.remote.wire import COMPLETIONS, GENERATE, one_lark, read_event
from interlock.tokenization.byte_tokenizer import byte_tokenizer


def test_grammars_of_users_become_nested_ones():
    """The same name in both, quotes and slashes included."""
    grammars = [Grammar('start: r0 "@user_0"\nr0: /a\\/b/', "lark"), Grammar('start: "x" "y"?', "lark")]
    spec = ConstraintSpec(root=Sequence((Marker("<@user_1>"), *grammars)))
    text = one_lark(lower(spec, {}))
    matcher = create_provider("llguidance", byte_tokenizer()).compile(text).matcher()
    for token_id in b"<@user_1>a/b@user_0x":
        matcher.accept(token_id)
    assert matcher.is_accepting


def test_a_grammar_alone_stays_as_it_is_behind_the_directive():
    constraint = LoweredConstraint(provider="llguidance", grammar="start: /@user_0/\n", key="k")
    assert one_lark(constraint) == "%llguidance {}\nstart: /@user_0/\n"


SCORED = {
    GENERATE: {
        "content": [
            {
                "token_id": 7,
                "logprob": -3.0,
                "top_logprobs": [
                    {"token_id": 7, "logprob": -3.0},
                    {"token_id": 1, "logprob": -0.5},
                    {"token_id": 2, "logprob": -1.0},
                ],
            }
        ]
    },
    COMPLETIONS: {
        "tokens": ["token_id:7"],
        "token_logprobs": [-3.0],
        "top_logprobs": [{"token_id:7": -3.0, "token_id:1": -0.5, "token_id:2": -1.0}],
    },
}


@pytest.mark.parametrize("endpoint", [GENERATE, COMPLETIONS])
def test_scores_are_read_best_first_and_only_as_many_as_were_asked_for(endpoint):
    choice = {"index": 0, "token_ids": [7], "finish_reason": None, "logprobs": SCORED[endpoint]}
    event = json.dumps({"choices": [choice]})
    (score,) = read_event(endpoint, event, 2).logprobs
    assert (score.token_id, score.logprob, score.top) == (7, -3.0, ((1, -0.5), (2, -1.0)))
    assert read_event(endpoint, event, 0).logprobs[0].top == ()
    assert read_event(endpoint, event, None).logprobs == ()


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ('{"error": {"message": "no", "code": 400}}', "invalid_value"),
        ('{"error": {"message": "no", "code": 500}}', "worker_died"),
        ('{"error": "no"}', "worker_died"),
        ("{", "internal_error"),
        ('{"choices": [{}]}', "internal_error"),
        ("[]", "internal_error"),
    ],
)
def test_an_event_that_is_an_error_or_none_at_all_is_an_error(event, code):
    with pytest.raises(InterlockError) as failed:
        read_event(GENERATE, event, None)
    assert failed.value.code == code
