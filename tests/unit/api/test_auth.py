from __future__ import annotations

import pytest

from interlock.config import HttpConfig

KEYED = HttpConfig(api_keys=("first", "sécond"))


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        ("Bearer wrong", 401),
        ("Bearer firs", 401),
        ("Basic first", 401),
        ("Bearer first", 200),
        ("bearer first", 200),
        ("Bearer  first ", 200),
    ],
)
async def test_keys(make_api, header: str | None, status: int) -> None:
    api = make_api(http=KEYED)
    headers = {} if header is None else {"authorization": header}
    response = await api.client.get("/v1/models", headers=headers)
    assert response.status_code == status
    if status == 401:
        error = response.json()["error"]
        assert (error["code"], error["type"], error["param"]) == (
            "invalid_api_key",
            "authentication_error",
            None,
        )
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.headers["x-request-id"]


async def test_health_is_open_and_everything_else_is_not(make_api) -> None:
    api = make_api(http=KEYED)
    assert (await api.client.get("/health")).status_code == 200
    for path in ("/metrics", "/version", "/v1/models", "/nowhere"):
        assert (await api.client.get(path)).status_code == 401


async def test_without_keys_the_server_is_open(api) -> None:
    assert (await api.client.get("/v1/models", headers={"authorization": "Bearer any"})).status_code == 200
