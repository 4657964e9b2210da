"""Scripts of other sites: only those that are named, and never at the admin API."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.config import HttpConfig

SITE = "https://app.example.com"
PREFLIGHT = {"origin": SITE, "access-control-request-method": "POST"}


def allowed(response: Any) -> str | None:
    return response.headers.get("access-control-allow-origin")


async def test_without_the_option_no_site_may_read_anything(api) -> None:
    assert allowed(await api.client.get("/v1/models", headers={"origin": SITE})) is None
    response = await api.client.options("/v1/chat/completions", headers=PREFLIGHT)
    assert response.status_code == 405
    assert allowed(response) is None


async def test_a_named_site_may_ask_with_a_key_and_read_our_headers(make_api) -> None:
    api = make_api(http=HttpConfig(allow_origins=(SITE,), api_keys=("k",)))
    headers = {**PREFLIGHT, "access-control-request-headers": "authorization, content-type"}
    preflight = await api.client.options("/v1/chat/completions", headers=headers)
    assert (preflight.status_code, allowed(preflight)) == (200, SITE)
    assert "authorization" in preflight.headers["access-control-allow-headers"]
    refused = await api.client.get("/v1/models", headers={"origin": SITE})
    assert (refused.status_code, allowed(refused)) == (401, SITE)  # the script can read why
    answer = await api.client.get("/v1/models", headers={"origin": SITE, "x-api-key": "k"})
    assert "x-interlock-ignored" in answer.headers["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in answer.headers


async def test_other_sites_stay_out(make_api) -> None:
    api = make_api(http=HttpConfig(allow_origins=(SITE,)))
    other = {**PREFLIGHT, "origin": "https://evil.example"}
    assert allowed(await api.client.options("/v1/chat/completions", headers=other)) is None
    assert allowed(await api.client.get("/v1/models", headers=other)) is None


@pytest.mark.parametrize("path", ["/admin", "/admin/api/models", "/admin/api/requests"])
async def test_the_admin_api_is_never_open_to_another_site(make_api, path: str) -> None:
    api = make_api(http=HttpConfig(allow_origins=("*",)))
    assert allowed(await api.client.get(path, headers={"origin": SITE})) is None
