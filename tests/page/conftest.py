"""Fixtures: a browser that shows the page, and a stand-in for its server.

JAXZERO_PAGE_URL=http://127.0.0.1:8000/ runs the tests against a running server.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import defaultdict

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
# Files and sharing are behind a button; most tests need no click on it.
OPEN_FILES = """addEventListener("DOMContentLoaded", () => {
    document.querySelector("#files")?.setAttribute("open", "");
});"""
WIDTHS = {"phone": (375, 667), "low": (667, 375), "desk": (1600, 1000)}


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


@pytest.fixture(scope="module")
def contexts(browser):
    """Keep the contexts that no test uses at the moment, by their options: they know the files."""
    return defaultdict(list)


@pytest.fixture
def open_page(browser, page_url, contexts):
    """Return a function that opens the page at a fragment; errors in its console fail the test.

    Every page has a storage of its own. A context that is `alone` serves one test: clocks stay.
    """
    from browsing import wait_for_info

    used, complaints = [], []

    def open_(
        fragment="play", size="desk", scheme="light", motion="reduce", alone=False, **options
    ):
        # A service worker would fetch all files again for each test.
        options = {"locale": "en-US", "service_workers": "block"} | options
        unused = [] if alone else contexts[repr(options)]
        context = unused.pop() if unused else browser.new_context(**options)
        used.append((context, unused, alone))
        page = context.new_page()
        width, height = WIDTHS[size]
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme, reduced_motion=motion)
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: note(message, complaints))
        clear = {"origin": page_url.rstrip("/"), "storageTypes": "local_storage"}
        context.new_cdp_session(page).send("Storage.clearDataForOrigin", clear)
        page.add_init_script(OPEN_FILES)
        page.goto(f"{page_url}#{fragment}")
        wait_for_info(page)
        return page

    yield open_
    for context, unused, alone in used:
        if alone:
            context.close()
        else:
            context.set_offline(False)
            for page in context.pages:
                page.close()
            unused.append(context)
    assert complaints == []


def note(message, complaints):
    # The browser itself reports requests and answers that a test makes fail.
    made_to_fail = (
        r"status of (400|503)|net::ERR_(FAILED|INTERNET_DISCONNECTED)|blocked by Playwright"
    )
    planned = re.search(made_to_fail, message.text)
    if message.type in ("error", "warning") and not planned:
        complaints.append(f"{message.type}: {message.text}")
