#!/usr/bin/python3
"""The page in Debian's Chromium: it lists, follows, filters, shows a diff, outlives a restart, and shows
a hostile model's words as words. Skipped where Chromium or Selenium is not installed."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import serving  # noqa: E402
from serving import BROKEN, GOOD, HOSTILE  # noqa: E402

try:
    import browsing
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError as why:
    print(why)
    sys.exit(77)


@contextlib.contextmanager
def kept_port():
    """A port that the system gives to no other socket meanwhile; one with SO_REUSEADDR may listen there."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(home.cleanup)
        cls.home = home.name
        # The user of this test may have no home to write to, and a proxy.
        os.environ.update(HOME=home.name, XDG_CACHE_HOME=home.name + "/cache", NO_PROXY="*", no_proxy="*")
        cls.root = pathlib.Path(home.name) / "runs"
        cls.root.mkdir()
        script = serving.write_script(cls.home, serving.replies(BROKEN, GOOD, HOSTILE))
        subprocess.run(
            serving.run_arguments(cls.root / "first", script, turns=3), check=True, stdout=subprocess.DEVNULL
        )
        served = serving.page(cls.root)
        cls.url = served.__enter__()
        cls.addClassCleanup(served.__exit__, None, None, None)
        cls.chrome = browsing.browser()
        cls.addClassCleanup(cls.chrome.quit)
        cls.chrome.set_script_timeout(browsing.PATIENCE)

    # -- helpers ---------------------------------------------------------------------------------

    def open(self, place, url=None):
        self.chrome.get("about:blank")
        self.chrome.get_log("browser")
        self.chrome.get(f"{url or self.url}/#/{place}")

    def wait(self, what, text=None):
        return browsing.wait(self.chrome, what, text)

    def read(self, what, text=None):
        return browsing.read(self.chrome, what, text)

    def press(self, what, text=None):
        browsing.press(self.chrome, what, text)

    def tearDown(self):
        # The content policy and every script error are in the browser's log.
        severe = [x["message"] for x in self.chrome.get_log("browser") if x["level"] == "SEVERE"]
        self.assertEqual([x for x in severe if "net::ERR" not in x and "favicon" not in x], [])

    # -- tests -----------------------------------------------------------------------------------

    def test_runs_are_listed_and_lead_to_episodes(self):
        self.open("runs")
        self.press("td a", "first")
        self.wait("figure", "Turns that passed each stage")
        self.wait(".card", "finished")
        self.assertGreaterEqual(len(self.chrome.find_elements(By.CSS_SELECTOR, "figure svg[role=img]")), 4)
        self.press(".tabs a", "Episodes")
        self.press("td a", "g0.e1")
        self.wait("h2", "native/row_sum")

    def test_a_filter_is_in_the_address_and_by_the_keyboard(self):
        self.open("runs/first/episodes")
        self.wait("td a", "g0.e0")
        self.chrome.find_element(By.TAG_NAME, "body").send_keys("/")
        self.assertEqual(self.chrome.execute_script("return document.activeElement.id"), "where")
        ActionChains(self.chrome).send_keys("id=g0.e1", Keys.ENTER).perform()  # to whatever has the focus
        self.wait("#matching", "1 shown")
        self.assertIn("where=id%3Dg0.e1", self.chrome.current_url)
        rows = self.chrome.execute_script("return [...document.querySelectorAll('tbody td a')].map(x => x.textContent)")
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
        self.assertIn("format: pass", self.read("#turn-1 .gates"))

    def test_a_hostile_completion_is_only_words(self):
        self.open("runs/first/episodes/g0.e0")
        self.press("#completion-2 summary")
        words = self.read("#completion-2 pre", "<script>")
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
        self.wait("caption, main p", "iolation")  # "No violation." or a table: timing decides
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
                    "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
                )
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
                ".map(x => x.outerHTML.slice(0, 80))"
            )
            self.assertEqual(nameless, [], place)

    def test_an_episode_is_followed_to_its_end(self):
        # The policy waits for this test, and this page outlives the run: nothing here depends on
        # which of them is faster.
        with serving.held_policy([BROKEN, GOOD, GOOD]) as (policy, release):
            arguments = serving.held_arguments(self.root / "followed", policy, turns=3)
            with serving.monitored(arguments) as (process, url):
                self.open("live", url)
                self.press("td a", "g0.e0")
                release(0)
                self.wait("#turn-0")  # nothing is pressed from here on
                release(1)
                self.wait("#turn-1")
                self.open("runs/followed/episodes/g0.e0")
                self.wait("#turn-1")
                release(2)
                self.wait("#turn-2")
                self.wait("#summary", "Returns")  # its end
                process.wait()
            self.assertEqual(process.returncode, 0)
        self.chrome.get_log("browser")  # the run's own page is gone with the run

    def test_the_page_outlives_a_restart_of_its_server(self):
        with kept_port() as port:
            self.outlive_a_restart("--listen", f"127.0.0.1:{port}")
        self.chrome.get_log("browser")

    def outlive_a_restart(self, *listen):
        script = serving.write_script(self.home, serving.replies(BROKEN, GOOD), latency_ms=5)
        with serving.page(self.root, *listen) as url:
            self.open("runs", url)
            self.wait("#connection", "live")
        self.wait("#connection", "lost")
        with serving.page(self.root, *listen):
            self.wait("#connection", "live")
            subprocess.run(
                serving.run_arguments(self.root / "afterwards", script, members=1), check=True, capture_output=True
            )
            self.wait("td a", "afterwards")

    def test_bytes_that_are_no_utf8_are_only_words(self):
        # A policy's bytes that are no text in any encoding are an answer without a kernel: a turn, and only words.
        with serving.held_policy([b"<b>over \xff\xfe\xc3( long \xf0\x9f</b>"]) as (policy, release):
            release(0)
            subprocess.run(
                serving.held_arguments(self.root / "bytes", policy, members=1, turns=1), check=True, capture_output=True
            )
        self.open("runs/bytes/episodes/g0.e0")
        self.assertIn("\ufffd", self.read("#completion-0 .words", "<b>over"))
        self.assertEqual(self.chrome.find_elements(By.CSS_SELECTOR, "main .said b"), [])
        # A kernel can print such bytes.
        loud = (
            serving.SIGNATURE
            + """ {
  fputs("<script>window.hacked = 3</script>\\xff\\xfe\\xc3(\\n", stderr);
  abort();
}
"""
        )
        script = serving.write_script(self.home, serving.replies("#include <cstdio>\n#include <cstdlib>\n" + loud))
        subprocess.run(
            serving.run_arguments(self.root / "loud", script, members=1, turns=1), check=True, capture_output=True
        )
        self.open("runs/loud/episodes/g0.e0")
        self.press("#output-0 summary")
        words = self.read("#output-0 pre", "<script>")
        self.assertIn("???(", words)
        self.assertIsNone(self.chrome.execute_script("return window.hacked ?? null"))

    def test_groups_lead_to_a_comparison(self):
        self.open("runs/first/groups")
        self.wait("td", "g0")
        self.assertEqual(len(self.chrome.find_elements(By.CSS_SELECTOR, "td svg circle")), 2)
        self.press("td a", "g0.e")
        self.wait("h2", "Side by side")
        self.wait("caption", "Turn by turn")
        field = self.wait("#b")
        field.clear()
        field.send_keys("first/g0.e0.t0", Keys.ENTER)
        self.wait("[role=alert]", "A is one of the episodes and B one of the turns")
        self.chrome.get_log("browser")  # the refused question is there, as it should be
        self.open("compare?a=first/g0.e0.t0&b=first/g0.e0.t1")
        self.wait("pre.diff .plus", "double s = 0;")
        self.open("compare?a=first&b=first")
        self.wait("caption", "Means of tasks")

    def test_a_lineage_shows_forks(self):
        script = serving.write_script(self.home, serving.replies(BROKEN, GOOD))
        subprocess.run(
            [
                serving.PROGRAM,
                "fork",
                f"{self.root}/first/g0.e0.t1",
                "--policy",
                str(script),
                "--root",
                str(self.root),
                "run.name=forked",
                f"run.dir={self.root}/forked",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.open("runs/first/episodes/g0.e0")
        self.wait("figure", "1 forks")
        self.press("svg a[aria-label^='forked']")
        self.wait("h2", "forked")

    def test_both_colour_schemes_can_be_read(self):
        luminance = """
            const of = (css) => css.match(/[\\d.]+/g).slice(0, 3).map((x) => x / 255)
                .map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
                .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
            const ground = of(getComputedStyle(document.body).backgroundColor);
            return [...document.querySelectorAll(arguments[0])].map((x) => {
                const ink = of(getComputedStyle(x).color);
                const contrast = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
                return [x.className + ' ' + x.textContent.slice(0, 20), contrast];
            });"""
        grounds = []
        for scheme in ("dark", "light"):
            self.chrome.execute_cdp_cmd(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            )
            for place in ("runs", "runs/first", "runs/first/episodes/g0.e0"):
                self.open(place)
                self.wait("h2")
                seen = self.chrome.execute_script(luminance, "main a, main p, main h2, main span, main caption, nav a")
                self.assertEqual([x for x in seen if x[1] < 4.5], [], (scheme, place))  # WCAG AA
            grounds.append(self.chrome.execute_script("return getComputedStyle(document.body).backgroundColor"))
        self.assertNotEqual(*grounds)

    def test_a_reader_without_a_mouse_gets_everywhere(self):
        self.open("runs")
        self.wait("td a", "first")
        self.chrome.execute_script("document.activeElement.blur()")
        for key, wanted in ((Keys.TAB, "Skip to the content"),):
            ActionChains(self.chrome).send_keys(key).perform()
            self.assertEqual(self.chrome.execute_script("return document.activeElement.textContent"), wanted)
        self.follow_by_keys("first")
        self.wait("h2", "Run first")
        self.follow_by_keys("Episodes")
        self.wait("td a", "g0.e0")
        self.follow_by_keys("Task")  # a head of the table that sorts
        self.wait("th[aria-sort=ascending]", "Task")
        # The focus stays where it was when the page draws itself anew.
        self.follow_by_keys("g0.e0")
        self.wait("h2", "native/row_sum")

    def follow_by_keys(self, text):
        """Presses Tab until something has the focus that says `text`, then Enter."""
        for _ in range(200):
            said = self.chrome.execute_script("return document.activeElement.textContent.trim()")
            if said == text or said.startswith(text + " "):
                ActionChains(self.chrome).send_keys(Keys.ENTER).perform()
                return
            ActionChains(self.chrome).send_keys(Keys.TAB).perform()
        self.fail(f"no Tab leads to {text}")

    def test_an_event_is_in_the_page_as_soon_as_it_comes(self):
        with serving.held_policy([BROKEN, GOOD]) as (policy, release):
            arguments = serving.held_arguments(self.root / "soon", policy, members=1, turns=2)
            with serving.monitored(arguments) as (process, url):
                self.open("runs", url)
                self.press("td a", "soon")
                self.wait("#connection", "live")
                release(0)
                self.wait("#latest li", "soon/g0.e0.t0 compile_error")
                self.wait(".card", "Turns\n1")  # without a further event
                release(1)
                self.wait("#latest li", "soon/g0.e0.t1")
                process.wait()
        self.chrome.get_log("browser")


if __name__ == "__main__":
    unittest.main(verbosity=2)
