"""Headless Chromium, where it is installed: loads a page, lets its scripts run, and gives back what became of it."""

import shutil
import subprocess

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr"]

needs_browser = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed, so no page can be drawn")


def _run(page, profile, query, *options):
    address = f"{page.as_uri()}{query}"
    command = [BROWSER, *FLAGS, f"--user-data-dir={profile}", "--virtual-time-budget=3000", *options, address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not complaints, complaints
    return done.stdout


def dom(page, profile, query=""):
    """The page's HTML after its scripts have run; fails if one of them complained."""
    return _run(page, profile, query, "--window-size=1240,900", "--dump-dom")


def screenshot(page, profile, target, query="", height=3000):
    """A picture of the page, [H, W, 3]."""
    import numpy as np
    from PIL import Image

    _run(page, profile, query, f"--window-size=1240,{height}", f"--screenshot={target}")
    return np.asarray(Image.open(target).convert("RGB"))
