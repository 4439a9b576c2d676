#!/usr/bin/python3
"""The page in Debian's Chromium: it lists, follows, filters, shows a diff, outlives a restart, and shows
a hostile model's words as words. Skipped where Chromium or Selenium is not installed."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import serving  # noqa: E402
from serving import BROKEN, GOOD, HOSTILE  # noqa: E402

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    print("python3-selenium is not installed")
    sys.exit(77)
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    print("chromium and chromium-driver are not installed")
    sys.exit(77)

PATIENCE = 120  # seconds: other work may have the machine


def browser(width=1200, height=900):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--disable-background-networking", "--no-first-run", f"--window-size={width},{height}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    from selenium.webdriver.chrome.service import Service
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        os.environ["XDG_CACHE_HOME"] = cls.home.name + "/cache"
        cls.root = pathlib.Path(cls.home.name) / "runs"
        cls.root.mkdir()
        script = serving.write_script(cls.home.name, serving.replies(BROKEN, GOOD, HOSTILE))
        subprocess.run(serving.run_arguments(cls.root / "first", script, turns=3), check=True,
                       capture_output=True)
        # A byte that is no UTF-8, in a text of the store that the page shows.
        cls.serving = serving.page(cls.root)
        cls.url = cls.serving.__enter__()
        cls.chrome = browser()
        cls.chrome.set_script_timeout(PATIENCE)

    @classmethod
    def tearDownClass(cls):
        cls.chrome.quit()
        cls.serving.__exit__(None, None, None)
        cls.home.cleanup()

    # -- helpers ---------------------------------------------------------------------------------

    def open(self, place, url=None):
        self.chrome.get("about:blank")
        self.chrome.get_log("browser")
        self.chrome.get(f"{url or self.url}/#/{place}")

    def wait(self, what, text=None):
        """The first element that the selector finds, with this text in it."""
        def found(chrome):
            try:
                return next((x for x in chrome.find_elements(By.CSS_SELECTOR, what)
                             if text is None or text in x.text), None)
            except Exception:  # noqa: BLE001: it was drawn anew meanwhile
                return None
        return WebDriverWait(self.chrome, PATIENCE).until(found, f"no {what} with {text!r}")

    def tearDown(self):
        # The content policy and every script error are in the browser's log.
        severe = [x["message"] for x in self.chrome.get_log("browser") if x["level"] == "SEVERE"]
        self.assertEqual([x for x in severe if "net::ERR" not in x and "favicon" not in x], [])

    # -- tests -----------------------------------------------------------------------------------

    def test_runs_are_listed_and_lead_to_episodes(self):
        self.open("runs")
        self.wait("td a", "first").click()
        self.wait("figure", "Funnel")
        self.wait(".card", "finished")
        self.assertGreaterEqual(len(self.chrome.find_elements(By.CSS_SELECTOR, "figure svg[role=img]")), 4)
        self.wait(".tabs a", "Episodes").click()
        self.wait("td a", "g0.e1").click()
        self.wait("h2", "native/row_sum")

    def test_a_filter_is_in_the_address_and_by_the_keyboard(self):
        self.open("runs/first/episodes")
        self.wait("td a", "g0.e0")
        self.chrome.find_element(By.TAG_NAME, "body").send_keys("/")
        field = self.chrome.switch_to.active_element
        self.assertEqual(field.get_attribute("id"), "where")
        field.send_keys("id=g0.e1", Keys.ENTER)
        self.wait("#matching", "1 shown")
        self.assertIn("where=id%3Dg0.e1", self.chrome.current_url)
        rows = [x.text for x in self.chrome.find_elements(By.CSS_SELECTOR, "tbody td a")]
        self.assertEqual(rows, ["g0.e1"])
        self.open("runs/first/episodes?where=colour%3Dred")
        self.wait("[role=alert]", "no key 'colour'")
        self.chrome.get_log("browser")  # the refused question is there, as it should be

    def test_a_transcript_with_a_diff_compiler_output_and_times(self):
        self.open("runs/first/episodes/g0.e0")
        self.wait("#turn-1 pre.diff .plus", "double s = 0;")
        self.wait("#turn-1 pre.diff .minus", "nonsense")
        self.wait("#build-0 pre", "nonsense")
        self.wait("figure", "Lineage")
        self.assertIn("format: pass", self.wait("#turn-1 .gates").text)

    def test_a_hostile_completion_is_only_words(self):
        self.open("runs/first/episodes/g0.e0")
        said = self.wait("#completion-2")
        said.find_element(By.TAG_NAME, "summary").click()
        words = self.wait("#completion-2 pre", "<script>").text
        self.assertIn("<img src=x onerror=", words)
        self.assertIn("\u241b]0;owned\u2407", words)  # escapes as symbols
        self.assertNotIn("\u202e", words)
        self.assertLess(len(words), 300_000)
        self.assertIsNone(self.chrome.execute_script("return window.hacked ?? null"))
        self.assertEqual(self.chrome.find_elements(By.CSS_SELECTOR, "main script, main img"), [])

    def test_slots_and_machines_have_pages(self):
        self.open("runs/first/lanes")
        self.wait("figure", "Slots over")
        self.open("runs/first/findings")
        self.wait("main", "finding")
        self.open("system")
        self.wait("h3", "Policy servers")
        self.open("live")
        self.wait("main", "No run is in progress")

    def test_a_narrow_screen_shows_all_without_scrolling_sideways(self):
        self.chrome.set_window_size(500, 800)
        try:
            for place in ("runs", "runs/first", "runs/first/episodes", "runs/first/episodes/g0.e0"):
                self.open(place)
                self.wait("h2")
                wide = self.chrome.execute_script(
                    "return document.documentElement.scrollWidth - document.documentElement.clientWidth")
                self.assertLessEqual(wide, 0, place)
        finally:
            self.chrome.set_window_size(1200, 900)

    def test_everything_that_can_be_pressed_has_a_name(self):
        for place in ("runs", "runs/first/episodes", "runs/first/episodes/g0.e0"):
            self.open(place)
            self.wait("h2")
            nameless = self.chrome.execute_script(
                "return [...document.querySelectorAll('a,button,input,select,svg[role=img],summary')]"
                ".filter(x => !(x.textContent.trim() || x.getAttribute('aria-label') || x.labels?.length))"
                ".map(x => x.outerHTML.slice(0, 80))")
            self.assertEqual(nameless, [], place)

    def test_an_episode_is_followed_to_its_end(self):
        script = serving.write_script(self.home.name, serving.replies(BROKEN, GOOD, GOOD), latency_ms=1500)
        arguments = serving.run_arguments(self.root / "followed", script, members=2, turns=3)
        with subprocess.Popen([*arguments, "--monitor", "0"], stderr=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, text=True) as process:
            url = next(line for line in process.stderr if line.startswith("page: ")).split()[1]
            self.open("live", url)
            self.wait("td a", "g0.e0").click()
            # Nothing is pressed from here on.
            self.wait("#turn-0")
            self.wait("#turn-1")
            self.wait("#turn-2")
            process.communicate()
        self.assertEqual(process.returncode, 0)
        self.open("runs/followed/episodes/g0.e0")
        self.wait("#summary", "accepted")
        self.chrome.get_log("browser")

    def test_the_page_outlives_a_restart_of_its_server(self):
        listen = ("--listen", f"127.0.0.1:{free_port()}")
        script = serving.write_script(self.home.name, serving.replies(BROKEN, GOOD), latency_ms=5)
        with serving.page(self.root, *listen) as url:
            self.open("runs", url)
            self.wait("#connection", "live")
        self.wait("#connection", "lost")
        with serving.page(self.root, *listen):
            self.wait("#connection", "live")
            subprocess.run(serving.run_arguments(self.root / "afterwards", script, members=1), check=True,
                           capture_output=True)
            self.wait("td a", "afterwards")
        self.chrome.get_log("browser")


if __name__ == "__main__":
    unittest.main(verbosity=2)
