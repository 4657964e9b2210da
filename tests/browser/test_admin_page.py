"""The page in a real browser, on the embedded model: what a person would do, and what they would see."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from interlock.config import EngineConfig, HttpConfig, LlamaCppConfig, ServerConfig
from interlock.launch import BackgroundServer

pytestmark = pytest.mark.model

WAIT_MS = 60_000
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def url(demo_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    patch = pytest.MonkeyPatch()
    patch.setenv("INTERLOCK_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
    engine = EngineConfig(model=demo_model, slots=2, context_tokens=2048, llama_cpp=LlamaCppConfig(threads=1))
    server = BackgroundServer(
        ServerConfig(served_name="demo", engine=engine, http=HttpConfig(port=0, drain_s=1))
    )
    yield server.start()
    server.stop()
    patch.undo()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on this machine")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Any, url: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 860}, color_scheme="dark")
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.set_default_timeout(WAIT_MS)
    opened.goto(f"{url}/admin")
    yield opened
    context.close()
    assert errors == []


def shot(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(SCREENSHOTS / f"{name}.png"))


def run(page: Page) -> None:
    page.keyboard.press("Control+Enter")
    expect(page.locator("#facts")).to_contain_text("tokens", timeout=WAIT_MS)


def test_a_constrained_request_and_its_trace(page: Page, tmp_path: Path) -> None:
    expect(page.locator("#verdict")).to_have_text("taken", timeout=WAIT_MS)
    expect(page.locator("#report tbody")).to_contain_text("maxLength")
    run(page)
    answer = json.loads(page.locator("#answer").inner_text())
    assert set(answer) >= {"name", "age"}
    page.locator("#prompt-details summary").click()
    expect(page.locator("#prompt")).to_contain_text("Ada is 36", timeout=WAIT_MS)
    expect(page.locator("#tree")).to_contain_text("JsonValue [json]")
    shot(page, "playground")
    page.emulate_media(color_scheme="light")
    shot(page, "playground-light")
    page.locator("#tab-trace").click()
    tokens = page.locator("#tokens .token")
    assert "".join(tokens.all_inner_texts()).replace("·", "").strip().startswith("{")
    tokens.first.hover()
    expect(page.locator("#detail")).to_contain_text("The model wanted")
    page.locator("#tokens").press("ArrowRight")
    expect(page.locator("#tokens [aria-selected=true]")).to_have_count(1)
    shot(page, "trace")
    count = tokens.count()
    with page.expect_download() as download:
        page.locator("#save").click()
    saved = tmp_path / "trace.json"
    download.value.save_as(saved)
    page.reload()
    page.locator("#open").set_input_files(saved)
    expect(tokens).to_have_count(count)


def test_a_schema_is_reported_while_it_is_typed(page: Page) -> None:
    expect(page.locator("#verdict")).to_have_text("taken", timeout=WAIT_MS)
    page.locator("#constraint").fill('{"type": "object", "properties": {"a": {"$ref": "http://other/schema"}}}')
    expect(page.locator("#verdict")).to_have_class("bad", timeout=WAIT_MS)
    expect(page.locator("#report tbody")).to_contain_text("refused")
    page.locator("#constraint").fill("{")
    expect(page.locator("#verdict")).to_contain_text("not JSON")


def test_a_setting_is_changed_and_a_bad_one_refused(page: Page, url: str) -> None:
    page.locator("#tab-models").click()
    page.locator("#settings [name=max_tokens]").fill("7")
    page.locator("#settings").get_by_role("button", name="Save").click()
    expect(page.locator("#saved")).to_contain_text("Saved", timeout=WAIT_MS)
    assert httpx.get(f"{url}/admin/api/models/demo/settings").json()["max_tokens"] == 7
    shot(page, "models")
    page.locator("#settings [name=max_tokens]").fill("-1")
    page.locator("#settings").get_by_role("button", name="Save").click()
    expect(page.locator("#alert")).to_contain_text("max_tokens")
    httpx.put(f"{url}/admin/api/models/demo/settings", json={"max_tokens": None}).raise_for_status()


def test_a_running_request_is_seen_and_cancelled(page: Page) -> None:
    page.locator("#kind").select_option("free")
    page.locator("#max-tokens").fill("1500")
    page.locator("#message").fill("Tell me a very long story about the sea.")
    page.locator("#run").click()
    page.locator("#tab-requests").click()
    row = page.locator("#live tbody tr")
    expect(row).to_have_count(1, timeout=WAIT_MS)
    expect(page.locator("#engine")).to_contain_text("slots in use", timeout=WAIT_MS)
    shot(page, "requests")
    row.get_by_role("button", name="Cancel").click()
    expect(row).to_have_count(0, timeout=WAIT_MS)
    page.locator("#tab-playground").click()
    expect(page.locator("#stop")).to_be_disabled(timeout=WAIT_MS)


def test_the_views_are_reached_by_keys(page: Page) -> None:
    page.locator("#tab-playground").focus()
    for name in ("trace", "requests", "models", "playground"):
        page.keyboard.press("ArrowRight")
        expect(page.locator(f"#{name}")).to_be_visible()
