"""Debian's Chromium for the tests of the page. ImportError where it is not installed."""

import shutil

from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    StaleElementReferenceException,
    WebDriverException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

if not (shutil.which("chromium") and shutil.which("chromedriver")):
    raise ImportError("chromium and chromium-driver are not installed")

PATIENCE = 240  # seconds: other work may have the machine


def browser(width=1200, height=900):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        f"--window-size={width},{height}",
    ):
        options.add_argument(word)
    options.accept_insecure_certs = True  # a test's own certificate
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for left in range(4, -1, -1):  # chromedriver gives a browser a minute to start
        try:
            return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        except WebDriverException:
            if left == 0:
                raise


def was_drawn_anew(why):
    """Whether the element went while it was asked. chromedriver has two ways to say so."""
    return isinstance(
        why, (StaleElementReferenceException, ElementClickInterceptedException, ElementNotInteractableException)
    ) or "does not belong to the document" in str(why)


def unless_drawn_anew(work):
    """What `work` gives; None where the page drew an element anew meanwhile."""

    def one_try(_):
        try:
            return work()
        except WebDriverException as why:
            if not was_drawn_anew(why):
                raise
            return None

    return one_try


def wait(chrome, what, text=None):
    """The first element that the selector finds, with this text in it."""
    found = unless_drawn_anew(
        lambda: next((x for x in chrome.find_elements(By.CSS_SELECTOR, what) if text is None or text in x.text), None)
    )
    return WebDriverWait(chrome, PATIENCE).until(found, f"no {what} with {text!r}")


def read(chrome, what, text=None):
    """The words of what `wait` would find, also where the page draws it anew meanwhile."""
    words = unless_drawn_anew(lambda: wait(chrome, what, text).text)
    return WebDriverWait(chrome, PATIENCE).until(words, f"failed to read {what} with {text!r}")


def press(chrome, what, text=None):
    """Clicks on what `wait` would find, also where the page draws it anew meanwhile."""

    def click():
        wait(chrome, what, text).click()
        return True

    pressed = unless_drawn_anew(click)
    WebDriverWait(chrome, PATIENCE).until(pressed, f"failed to press {what} with {text!r}")
