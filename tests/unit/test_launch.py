"""Where the admin API is served."""

from __future__ import annotations

import pytest

from interlock.config import HttpConfig
from interlock.launch import serves_admin


@pytest.mark.parametrize(
    ("http", "served"),
    [
        (HttpConfig(), True),
        (HttpConfig(host="::1"), True),
        (HttpConfig(host="localhost"), True),
        (HttpConfig(host="0.0.0.0"), False),
        (HttpConfig(host="example.com"), False),
        (HttpConfig(api_keys=("k",)), False),
        (HttpConfig(host="0.0.0.0", admin_keys=("k",)), True),
    ],
)
def test_admin_needs_a_key_where_others_could_reach_it(http: HttpConfig, served: bool) -> None:
    assert serves_admin(http) is served
