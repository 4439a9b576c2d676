#!/usr/bin/python3
"""Every view of the page in Debian's Chromium: at two widths, in both colour schemes, by the keyboard, while a run goes
on, and from a disk without a server. Skipped where Chromium or Selenium is not installed.

  views_test.py --pictures DIR    also leaves a picture of every view there
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import serving  # noqa: E402
from serving import BROKEN, GOOD  # noqa: E402

try:
    import browsing
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError as why:
    print(why)
    sys.exit(77)

PICTURES = None
VIEWS = [  # name, place, what is there once it is drawn
    ("runs", "runs", "tbody tr"),
    ("run", "runs/first?with=second", "figure polyline.line1"),
    ("tasks", "runs/first/tasks", "tbody tr"),
    ("episodes", "runs/first/episodes", "tbody tr"),
    ("episode", "runs/first/episodes/g0.e0", "pre.diff .hljs-keyword, pre.diff .hljs-built_in"),
    ("groups", "runs/first/groups", "tbody tr"),
    ("violations", "runs/first/findings", "main p, tbody tr"),
    ("slots", "runs/first/lanes", "figure"),
    ("configuration", "runs/first/config", "pre.code .hljs-attr"),
    ("log", "runs/first/log", "pre.log span"),
    ("search", "runs/searched/search", "svg.tree a .yes"),
    ("kernels", "kernels", "tbody tr"),
    ("compare", "compare?a=first&b=second", "figure circle"),
    ("live", "live", "h2"),
    ("machines", "system", "h3"),
    ("not-found", "nowhere", "h2"),
]


class Views(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(home.cleanup)
        cls.home = home.name
        os.environ.update(HOME=home.name, XDG_CACHE_HOME=home.name + "/cache", NO_PROXY="*", no_proxy="*")
        cls.root = pathlib.Path(home.name) / "runs"
        cls.root.mkdir()
        script = serving.write_script(cls.home, serving.replies(BROKEN, GOOD))
        for name in ("first", "second"):
            subprocess.run(
                serving.run_arguments(cls.root / name, script, turns=2), check=True, stdout=subprocess.DEVNULL
            )
        (cls.root.parent / "search").mkdir()
        steps = serving.write_script(cls.root.parent / "search", serving.search_replies(8))
        searched = serving.search_arguments(cls.root / "searched", steps, 6, "islands")
        subprocess.run(searched, check=True, stdout=subprocess.DEVNULL)
        served = serving.page(cls.root)
        cls.url = served.__enter__()
        cls.addClassCleanup(served.__exit__, None, None, None)
        cls.chrome = browsing.browser(1280, 900)
        cls.addClassCleanup(cls.chrome.quit)
        cls.chrome.set_script_timeout(browsing.PATIENCE)

    def open(self, place, url=None):
        self.chrome.get("about:blank")
        self.chrome.get_log("browser")
        self.chrome.get(f"{url or self.url}/#/{place}")

    def wait(self, what, text=None):
        return browsing.wait(self.chrome, what, text)

    def js(self, code):
        return self.chrome.execute_script("return " + code)

    def severe(self):
        return [x["message"] for x in self.chrome.get_log("browser") if x["level"] == "SEVERE"]

    def size(self, width, scheme):
        self.chrome.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        self.chrome.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False},
        )

    def test_each_view_fits_wide_and_narrow_light_and_dark(self):
        for name, place, what in VIEWS:
            self.size(1280, "light")
            self.open(place)
            self.wait(what)
            for width, scheme in ((1280, "light"), (1280, "dark"), (400, "dark"), (400, "light")):
                self.size(width, scheme)
                with self.subTest(view=name, width=width, scheme=scheme):
                    self.assertEqual(self.severe(), [])
                    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                    self.assertLessEqual(self.js(wide), 0)
                    # A card's words stay inside of it.
                    self.assertEqual(
                        self.js(
                            "[...document.querySelectorAll('.card')].filter(x => x.scrollWidth > x.clientWidth).length"
                        ),
                        0,
                    )
                if PICTURES:
                    self.chrome.save_screenshot(str(PICTURES / f"{name}-{width}-{scheme}.png"))
        self.size(1280, "light")

    def test_what_does_not_exist_is_not_found(self):
        for place in (
            "nowhere",
            "runs/nothing",
            "runs/first/nothing",
            "runs/first/episodes/g99.e0",
            "live/more",
            "%zz",
        ):
            self.open(place)
            self.wait("h2", "Not found")
            self.assertTrue(self.chrome.find_elements(By.CSS_SELECTOR, "main a[href='#/runs']"), place)
        self.chrome.get_log("browser")  # the server's own refusals are there, as they should be

    def test_main_has_no_ring_and_the_tab_has_a_picture(self):
        self.open("runs")
        self.wait("td a", "first").click()
        self.wait("figure")
        self.assertEqual(self.js("document.activeElement.id"), "main")
        self.assertEqual(self.js("getComputedStyle(document.activeElement).outlineStyle"), "none")
        status = "fetch(document.querySelector('link[rel=icon]').href).then(x => x.status)"
        self.assertEqual(self.chrome.execute_async_script(f"{status}.then(arguments[0])"), 200)

    def test_ticked_runs_are_compared_and_laid_over_each_other(self):
        self.open("runs")
        for name in ("first", "second"):
            self.wait(f"input[aria-label='Choose {name}']").click()
        self.wait(".chosen .note", "2 chosen")
        self.wait(".chosen button", "Overlay charts").click()
        self.wait("figure .legend", "second")
        self.assertIn("with=second", self.chrome.current_url)
        self.chrome.back()
        for name in ("first", "second"):
            self.wait(f"input[aria-label='Choose {name}']").click()
        self.wait(".chosen button", "Compare two").click()
        self.wait("figure figcaption", "Reward, task by task")

    def test_tags_are_put_on_a_run_and_taken_off(self):
        self.open("runs/second")
        self.wait("#tag").send_keys("baseline", Keys.ENTER)
        self.wait("button.chip", "baseline")
        self.open("runs?where=tags%3Dbaseline")
        self.wait(".chip", "baseline")
        self.wait("#matching", "1 shown")
        self.open("runs/second")
        self.wait("button.chip", "baseline").click()
        browsing.WebDriverWait(self.chrome, browsing.PATIENCE).until(
            lambda x: not x.find_elements(By.CSS_SELECTOR, "button.chip[aria-label^='Remove the tag']")
        )

    def test_the_best_kernel_shows_its_code(self):
        self.open("kernels")
        self.wait("td", "native/row_sum")
        self.wait("td button", "Show").click()
        self.wait("pre.code", "double s = 0;")

    def test_an_episode_is_read_by_the_keyboard(self):
        self.open("runs/first/episodes/g0.e0")
        self.wait("nav.index a", "Turn 2")
        self.wait(".said.model .note", "tokens")
        self.wait(".said.model summary", "Thoughts")
        ActionChains(self.chrome).send_keys("]").perform()
        self.wait("h2", "g0.e1")
        ActionChains(self.chrome).send_keys("[").perform()
        self.wait("h2", "g0.e0")
        self.wait("nav.index a", "Turn 2").click()
        self.assertIn("turn=1", self.chrome.current_url)
        self.assertEqual(self.js("document.activeElement.id"), "title-1")

    def test_timing_is_drawn_pair_by_pair(self):
        self.open("runs/first/episodes/g0.e0")
        self.wait("figure figcaption", "pair by pair")
        self.assertGreater(self.js("document.querySelectorAll('figure circle.dot').length"), 4)

    def test_a_search_shows_its_tree_its_islands_and_its_frontier(self):
        self.open("runs/first")
        self.wait("figure")
        self.assertNotIn("Search", [x.text for x in self.chrome.find_elements(By.CSS_SELECTOR, ".tabs a")])
        self.open("runs/searched")
        self.wait(".tabs a", "Search").click()
        self.wait("svg.tree a .yes")
        self.wait(".card", "finished")
        _, x = serving.get(self.url, "/api/v1/runs/searched/search")
        self.assertEqual(len(x["tree"]), 6)
        self.assertEqual(self.js("document.querySelectorAll('svg.tree a').length"), 6)
        children = [row for row in x["tree"] if row["parent"]]
        self.assertEqual(self.js("document.querySelectorAll('svg.tree .edge').length"), len(children))
        self.assertEqual(self.js("document.querySelectorAll('.charts.three .hover').length"), 3 * len(x["best_so_far"]))
        self.wait("caption", "The elite of each niche on each island")
        self.wait("caption", "A further generation would improve")
        # The table is sorted where it is: the tree stays the same element.
        self.chrome.execute_script("window.tree = document.querySelector('svg.tree')")
        self.wait("th button", "Generation").click()
        self.wait("th[aria-sort=ascending] button", "Generation")
        self.assertTrue(self.js("window.tree.isConnected"))
        self.assertIn("sort=generation", self.chrome.current_url)
        # By the keyboard: from a child to its parent, whose episode Enter opens.
        child, parent = children[-1]["episode"], children[-1]["parent"]
        self.chrome.execute_script(f"document.querySelector('svg.tree a[data-key=\"{child}\"]').focus()")
        ActionChains(self.chrome).send_keys(Keys.ARROW_LEFT).perform()
        self.assertEqual(self.js("document.activeElement.dataset.key"), parent)
        self.assertTrue(self.js(f"document.querySelector('.edge[data-key=\"{child}\"]') !== null"))
        ActionChains(self.chrome).send_keys(Keys.ENTER).perform()
        self.wait("h2", parent)
        self.assertEqual(self.severe(), [])

    def test_a_search_in_progress_grows_on_the_page(self):
        with serving.held_policy([GOOD]) as (policy, release):
            arguments = serving.search_arguments(
                self.root / "growing", policy, 2, more=["policy.model=held", "policy.sampling.logprobs=false"]
            )
            with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                self.addCleanup(process.kill)
                browsing.WebDriverWait(self.chrome, browsing.PATIENCE).until(
                    lambda _: serving.get(self.url, "/api/v1/runs/growing/search")[1].get("state") == "running"
                )
                self.open("runs/growing/search")
                self.wait("svg.tree .now")
                self.wait(".card", "in progress")
                release(0)
                self.wait("svg.tree .yes")
                process.wait()
                self.wait(".card", "finished")
        self.chrome.get_log("browser")

    def test_a_run_that_is_no_search_has_no_document_of_one(self):
        status, x = serving.get(self.url, "/api/v1/runs/first/search")
        self.assertEqual((status, x["error"]["category"]), (404, "not_found"))
        self.assertIn("kernelmill search TASK", x["error"]["hint"])

    def test_rows_stay_the_same_elements_while_a_run_goes_on(self):
        with serving.held_policy([BROKEN, GOOD]) as (policy, release):
            arguments = serving.held_arguments(self.root / "held", policy, members=1, turns=2)
            with serving.monitored(arguments) as (process, url):
                self.open("runs/held/episodes", url)
                self.wait("td a", "g0.e0")
                self.chrome.execute_script(
                    "const cell = document.querySelector('tbody td'); window.cell = cell;"
                    "getSelection().selectAllChildren(cell);"
                )
                release(0)
                self.wait("td", "compile_error")
                self.assertTrue(self.js("window.cell.isConnected"))
                self.assertEqual(self.js("getSelection().toString().trim()"), "g0.e0")
                release(1)
                process.wait()
        self.chrome.get_log("browser")

    def test_a_stored_page_opens_from_a_disk(self):
        folder = pathlib.Path(self.home) / "report"
        told = subprocess.run(
            [serving.PROGRAM, "page", "export", str(folder), str(self.root)]
            + [x for name in ("first", "second", "searched") for x in ("--run", name)],
            check=True,
            capture_output=True,
            text=True,
        )
        self.assertIn("3 runs, 10 episodes", told.stdout)
        again = subprocess.run(
            [serving.PROGRAM, "page", "export", str(folder), str(self.root)], capture_output=True, text=True
        )
        self.assertEqual(again.returncode, 4)
        self.assertIn("not empty", again.stderr)
        url = f"file://{folder}/index.html"
        self.chrome.get("about:blank")
        self.chrome.get_log("browser")
        self.chrome.get(url)
        self.wait("#connection", "stored")
        self.wait("td a", "first").click()
        self.wait("figure", "Reward by turn position")
        self.wait(".tabs a", "Episodes").click()
        self.wait("td a", "g0.e0").click()
        self.wait("pre.diff .plus", "double s = 0;")
        self.chrome.get(url + "#/runs/searched/search")
        self.wait("svg.tree a .yes")
        self.wait("th button", "Generation").click()
        self.wait("th[aria-sort=ascending] button", "Generation")
        self.chrome.get(url + "#/kernels")
        self.wait("td button", "Show").click()
        self.wait("pre.code", "double s = 0;")
        self.assertEqual(self.severe(), [])


if __name__ == "__main__":
    if "--pictures" in sys.argv:
        at = sys.argv.index("--pictures")
        PICTURES = pathlib.Path(sys.argv[at + 1])
        PICTURES.mkdir(parents=True, exist_ok=True)
        del sys.argv[at : at + 2]
    unittest.main(verbosity=2)
