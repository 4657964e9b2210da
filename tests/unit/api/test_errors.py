from __future__ import annotations

import logging

import pytest

from interlock.api.errors import RETRY_AFTER_S, error_body, error_response
from interlock.api.scripted import ScriptedService
from interlock.errors import CATALOG, InterlockError, Problem


@pytest.mark.parametrize("code", CATALOG)
def test_every_code_has_its_status_and_retry_advice(code: str) -> None:
    response = error_response(InterlockError(code, "x"))
    entry = CATALOG[code]
    assert response.status_code == entry.status
    assert response.headers["x-should-retry"] == ("true" if entry.retryable else "false")
    assert ("retry-after" in response.headers) == (entry.status in (429, 503)) == (code in RETRY_AFTER_S)


def test_the_body_is_openais_with_problems_and_hint_where_there_are_any() -> None:
    assert error_body(InterlockError("invalid_value", "no", param="a.b")) == {
        "error": {"message": "no", "type": "invalid_request_error", "param": "a.b", "code": "invalid_value"}
    }
    problems = (
        Problem(reason="not supported", keyword="contains", pointer="/properties/x/contains", tool="f"),
        Problem(reason="odd"),
    )
    error = error_body(InterlockError("invalid_schema", "no", problems=problems, hint="drop it"))["error"]
    assert error["hint"] == "drop it"
    assert error["problems"] == [
        {"keyword": "contains", "pointer": "/properties/x/contains", "reason": "not supported", "tool": "f"},
        {"keyword": "", "pointer": "", "reason": "odd"},
    ]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/", 404, "not_found"),
        ("POST", "/v1/chat/completions/", 404, "not_found"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/health", 405, "method_not_allowed"),
    ],
)
async def test_the_router_refuses_in_the_same_shape(
    api, method: str, path: str, status: int, code: str
) -> None:
    response = await api.client.request(method, path)
    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    assert status != 405 or response.headers["allow"]


async def test_a_fault_is_a_500_without_a_traceback_and_the_server_goes_on(
    make_api, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_request) -> list:
        raise RuntimeError("secret detail")

    service = ScriptedService(broken)
    api = make_api(service)
    with caplog.at_level(logging.ERROR):
        response = await api.chat()
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal_error"
    assert "secret" not in response.text
    assert "secret detail" in caplog.text
    assert response.headers["x-request-id"] in caplog.text
    service.answer = ScriptedService().answer
    assert (await api.chat()).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("code", ["overloaded", "not_ready", "invalid_schema", "context_length_exceeded"])
async def test_an_error_of_start_has_its_status_before_the_first_byte(
    make_api, stream: bool, code: str
) -> None:
    def refuse(_request) -> list:
        raise InterlockError(code, "no", param="p")

    response = await make_api(ScriptedService(refuse)).chat(stream=stream)
    assert response.status_code == CATALOG[code].status
    assert response.headers["content-type"] == "application/json"
    assert response.json()["error"]["param"] == "p"


@pytest.mark.parametrize("given", ["abc-1.2:3", None, "bad id", "x" * 200, "ümlaut"])
async def test_every_answer_has_a_request_id(api, given: str | None) -> None:
    headers = {} if given is None else {"x-request-id": given.encode()}
    for path in ("/health", "/nowhere"):
        got = (await api.client.get(path, headers=headers)).headers["x-request-id"]
        assert got == given if given == "abc-1.2:3" else got.startswith("req_")
