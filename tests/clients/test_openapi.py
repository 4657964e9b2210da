"""The OpenAPI document is what the server does: schemathesis makes requests from it, and no input gives a 500."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from interlock.api.openapi import document
from interlock.api.scripted import text

KEY = "test-key"

schema = schemathesis.openapi.from_dict(document())


def _no_server_error(_context: Any, response: Any, _case: Any) -> None:
    assert response.status_code < 500, response.text


@schema.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
def test_no_input_gives_a_server_error(case: Any, scripted: Any) -> None:
    scripted.plays(text("Hello"))
    if case.path.endswith("/settings"):
        case.path_parameters["name"] = "scripted"  # so that bodies are read, too
    case.call_and_validate(
        base_url=scripted.url,
        headers={"authorization": f"Bearer {KEY}"},
        timeout=20,
        checks=[_no_server_error, status_code_conformance, response_schema_conformance],
    )
