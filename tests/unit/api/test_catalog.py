"""The catalog is the application: its routes, its OpenAPI document and its page in the docs."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi.routing import APIRoute
from jsonschema import Draft202012Validator

from interlock.api.catalog import ENDPOINTS
from interlock.api.openapi import document
from interlock.api.page import page
from interlock.api.scripted import ScriptedAdmin
from interlock.settings.model import ModelSettings


def test_every_route_is_in_the_catalog(make_api) -> None:
    api = make_api(admin=ScriptedAdmin())
    routes = {
        (method.lower(), re.sub(r":\w+", "", route.path))
        for route in flat(api.app.routes)
        for method in route.methods - {"HEAD"}
    }
    assert routes == {(entry.method, entry.path) for entry in ENDPOINTS}


def flat(routes) -> list[APIRoute]:
    """Routes of the application and of what it includes."""
    found = []
    for route in routes:
        if isinstance(route, APIRoute):
            found.append(route)
        else:
            found += flat(route.original_router.routes if hasattr(route, "original_router") else route.routes)
    return found


async def test_the_document_is_served_and_its_references_lead_somewhere(api) -> None:
    body = (await api.client.get("/openapi.json")).json()
    assert body == document()
    references = set(re.findall(r'"#/components/schemas/(\w+)"', str(body).replace("'", '"')))
    assert references <= set(body["components"]["schemas"])
    for schema in body["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for path in document()["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids)) == len(ENDPOINTS)


def test_what_the_document_says_of_a_body_is_what_is_read() -> None:
    schemas = document()["components"]["schemas"]
    chat = {**schemas["WireMessagesRequest"], "components": {"schemas": schemas}}
    validator = Draft202012Validator(chat)
    good = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    assert validator.is_valid(good)
    assert not validator.is_valid({**good, "max_tokens": "5"})
    assert not validator.is_valid({"model": "m"})


def test_the_document_has_every_setting() -> None:
    schema = document()["components"]["schemas"]["WireSettings"]
    assert set(schema["properties"]) == set(ModelSettings().to_json())
    validator = Draft202012Validator(schema)
    assert validator.is_valid({"temperature": 0.5, "aliases": ["a"], "grammar": None})
    assert not validator.is_valid({"temperature": "warm"})
    assert not validator.is_valid({"banana": 1})


def test_no_field_is_both_read_and_refused() -> None:
    for entry in ENDPOINTS:
        if entry.body is not None:
            assert not set(entry.refused) & set(entry.body.model_fields), entry.path


def test_the_page_is_the_tables(request) -> None:
    assert (Path(request.config.rootpath) / "docs" / "api.md").read_text() == page()
