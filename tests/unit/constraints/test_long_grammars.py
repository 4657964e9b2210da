"""A grammar as long as anybody may send ends in a matcher or an error, never in the end of the process."""

from __future__ import annotations

import json
import threading

import pytest

from interlock.constraints.providers import deep_stack, llguidance_compile
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer

PROVIDER = LLGuidanceProvider(byte_tokenizer())


def chain(length: int, step: str, last: str, name: str = "r") -> str:
    lines = [f"{name}{number}: {step.format(next=f'{name}{number + 1}')}" for number in range(length)]
    return "\n".join([f"start: {name}0", *lines, f"{name}{length}: {last}"])


@pytest.mark.parametrize(
    "grammar",
    [
        pytest.param(chain(3000, '"a" {next}', '"b"'), id="rules"),
        pytest.param(chain(300, '"a" {next}', '"b"', "T"), id="terminals"),
        pytest.param(chain(800, f'{"(" * 10}"a" {{next}}{")" * 10}', '"b"'), id="groups"),
        pytest.param(
            json.dumps(
                {
                    "grammars": [
                        {"lark_grammar": "start: @user_0"},
                        {"name": "user_0", "lark_grammar": chain(3000, '"a" {next}', '"b"')},
                    ]
                }
            ),
            id="of a user",
        ),
    ],
)
def test_long_grammars_compile(grammar: str) -> None:
    matcher = PROVIDER.compile(grammar).matcher()
    assert matcher.validate([ord("a"), ord("a"), ord("x")]) == 2


@pytest.mark.parametrize(
    ("grammar", "reason"),
    [
        pytest.param(chain(10_001, '"a" {next}', '"b"'), "10003 rules and groups", id="rules"),
        pytest.param(
            chain(3_000, f'{"(" * 10}"a" {{next}}{")" * 10}', '"b"'), "33002 rules and groups", id="groups"
        ),
        pytest.param(chain(500, '"a" ~({next})', "/b*/", "T"), "more than 400 terminals", id="terminals"),
    ],
)
def test_what_could_overflow_any_stack_is_refused(grammar: str, reason: str) -> None:
    with pytest.raises(InterlockError, match=reason) as caught:
        PROVIDER.compile(grammar)
    assert caught.value.code == "constraint_too_complex"


def test_parentheses_in_texts_and_terminals_side_by_side_do_not_count() -> None:
    alternatives = " | ".join(f"T{number}" for number in range(500))
    texts = "\n".join(f'T{number}: "{"(" * 100}{number}" /\\({{100}}[A-Z]/' for number in range(500))
    assert PROVIDER.compile(f"start: {alternatives}\n{texts}").matcher()


def test_more_ways_on_than_the_parser_follows_are_refused_before_the_first_token() -> None:
    """Optional keys in declared order: any of them may come first."""
    keys = [f'r{n}: "k{n}" r{n + 1} | r{n + 1}' for n in range(2_500)]
    with pytest.raises(InterlockError, match="5001 items") as caught:
        PROVIDER.compile("\n".join(['start: "{" r0', *keys, 'r2500: "}"']))
    assert caught.value.code == "constraint_too_complex"


def test_conditions_of_rules_are_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llguidance_compile, "_MAX_LEVELS", 50)
    keys = " | ".join(f'"k{number}" t::set_bit(0) %if bit_clear(0)' for number in range(60))
    padding = "\n".join(f"// {number}" for number in range(200))
    assert PROVIDER.compile(f'start: p::0x0\np::_: {keys}\nt::_: "," p::_ | ";"\n{padding}').matcher()


def test_terminals_in_a_circle_are_refused_not_followed() -> None:
    lark = 'start: T0\nT0: "a" T1\n' + "\n".join(f'T{n}: "b"' for n in range(2, 200)) + '\nT1: "c" T0'
    with pytest.raises(InterlockError):
        PROVIDER.compile(lark)


def test_a_deep_stack_raises_what_its_work_raises_and_leaves_the_usual_size() -> None:
    usual = threading.stack_size()

    def fail() -> None:
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        deep_stack.on_deep_stack(fail)
    assert threading.stack_size() == usual


def test_a_deep_stack_that_there_is_no_room_for_is_an_error_of_the_grammar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deep_stack, "STACK_BYTES", 1 << 50)
    with pytest.raises(InterlockError, match="too long for the memory") as caught:
        deep_stack.on_deep_stack(lambda: None)
    assert caught.value.code == "constraint_too_complex"
