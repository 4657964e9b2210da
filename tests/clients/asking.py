"""Tools and requests for the embedded model, and how they are sent."""

from __future__ import annotations

from typing import Any

import httpx

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 20},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 2},
    },
    "required": ["city", "unit"],
}
MAIL: dict[str, Any] = {
    "type": "object",
    "properties": {"to": {"type": "string", "maxLength": 20}, "urgent": {"type": "boolean"}},
    "required": ["to", "urgent"],
}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "send_mail", "description": "Mail", "parameters": MAIL}},
]
SCHEMAS = {"get_weather": WEATHER, "send_mail": MAIL}


def ask(text: str, **fields: Any) -> dict[str, Any]:
    return {
        "model": "demo",
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        "max_tokens": 96,
        **fields,
    }


def post(url: str, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=120)


def content(url: str, body: dict[str, Any]) -> str:
    response = post(url, body)
    assert response.status_code == 200, response.text
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def json_schema(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def metric(url: str, name: str) -> float:
    line = next(row for row in httpx.get(f"{url}/metrics").text.splitlines() if row.startswith(name))
    return float(line.split()[-1])
