"""Pages in a real Chromium, for tests: what they log is an error, and so is fetching anything.

A test module takes the fixture with `browser = in_browser.browser` and marks itself with `in_browser.MARKS`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; install the package `chromium`"),
]
NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"
REFUSED = "Object.defineProperty(navigator, 'clipboard', { value: { writeText: async () => { throw Error('no') } } })"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@contextmanager
def shown(browser: Any, path: Path, *, width: int = 1280, scheme: str = "light", before: str = "") -> Iterator[Any]:
    """The page in a tab of its own, after the script `before`; leaving checks that it was quiet and kept to itself."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    errors: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    if before:
        page.add_init_script(before)
    page.goto(path.as_uri())
    yield page
    assert errors == []
    assert all(url.startswith(("file:", "data:")) for url in requests)
    context.close()
