"""Fixtures: a browser that shows the page, and a stand-in for its server.

JAXZERO_PAGE_URL=http://127.0.0.1:8000/ runs the tests against a running server.
"""

from __future__ import annotations

import os
import re
import shutil

import pytest

from jaxzero.game import DotsAndBoxes
from jaxzero.solver.endgame import solve

# The headless shell opens no windows and needs half the time of the others.
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
UNTESTED = "THE PAGE IS NOT TESTED"
OPTIONS = """--no-sandbox --disable-gpu --disable-background-networking --disable-component-update
    --disable-sync --no-first-run""".split()
PATIENCE = 120_000 if "JAXZERO_PAGE_URL" in os.environ else 20_000  # ms; engines compile
WIDTHS = {"small": (320, 568), "phone": (375, 667), "low": (667, 375), "desk": (1600, 1000)}


@pytest.fixture(scope="module")
def solver_is_loaded():
    """Compile the solver with a first call; later calls with few edges then take no time."""
    solve(DotsAndBoxes(2, 2), [0, 4])


@pytest.fixture(scope="module")
def page_url():
    """Yield the address of the stand-in, or of the server in the environment variable."""
    if "JAXZERO_PAGE_URL" in os.environ:
        yield os.environ["JAXZERO_PAGE_URL"]
        return
    pytest.importorskip("uvicorn", reason="needs the extra jaxzero[web]")
    from fake_api import serve

    with serve() as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason=f"{UNTESTED}: no playwright")
    if CHROMIUM is None:
        pytest.skip(f"{UNTESTED}: no Chromium on the PATH")
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, page_url):
    """Return a function that opens the page at a fragment; errors in its console fail the test."""
    from browsing import wait_for_info

    contexts, complaints = [], []

    def open_(fragment="play", size="desk", scheme="light", motion="reduce", **options):
        width, height = WIDTHS[size]
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion=motion,
            # A service worker would fetch all files again for each test.
            **{"locale": "en-US", "service_workers": "block"} | options,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: note(message, complaints))
        page.goto(f"{page_url}#{fragment}")
        wait_for_info(page)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def note(message, complaints):
    # The browser itself reports requests and answers that a test makes fail.
    made_to_fail = (
        r"status of (400|503)|net::ERR_(FAILED|INTERNET_DISCONNECTED)|blocked by Playwright"
    )
    planned = re.search(made_to_fail, message.text)
    if message.type in ("error", "warning") and not planned:
        complaints.append(f"{message.type}: {message.text}")
