#!/usr/bin/python3
"""Pictures of the page, of a real run of the quickstart on this machine.

  docs/pictures/page.py build/bin/kernelmill docs/pictures

Needs Debian's chromium, chromium-driver and python3-selenium.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 120
PLACES = [  # name, place, what must be there, dark, width, height
    ("page-run", "runs/first?with=two-turns", "figure polyline.line1", False, 1280, 1000),
    ("page-groups-dark", "runs/first/groups", "tbody tr", True, 1120, 760),
    ("page-episode", "runs/first/episodes/g3.e0", "pre.diff", False, 1280, 1500),
    ("page-compare", "compare?a=two-turns&b=first", "table caption", False, 1120, 980),
    ("page-slots-dark", "runs/first/lanes", "figure", True, 1120, 600),
]


def take(url, folder, name, place, wanted, dark, width, height):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--window-size={width},{height}",
    ):
        options.add_argument(word)
    chrome = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        chrome.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
        )
        chrome.get(f"{url}/#/{place}")
        WebDriverWait(chrome, PATIENCE).until(
            lambda x: (
                x.find_elements(By.CSS_SELECTOR, wanted) and x.find_element(By.ID, "connection").text in ("live", "")
            )
        )
        chrome.save_screenshot(str(folder / f"{name}.png"))
    finally:
        chrome.quit()


def main():
    program, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_CACHE_HOME"] = home + "/cache"
        for name, turns in (("first", 4), ("two-turns", 2)):
            subprocess.run(
                [program, "run", "quickstart", f"run.dir={home}/runs/{name}", f"tasks.max_turns={turns}"],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        with subprocess.Popen([program, "page", home + "/runs"], stdout=subprocess.PIPE, text=True) as page:
            url = page.stdout.readline().strip()
            try:
                for one in PLACES:
                    take(url, folder, *one)
            finally:
                page.terminate()


if __name__ == "__main__":
    main()
