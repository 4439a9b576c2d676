#!/usr/bin/python3
"""Pictures of the page, of a real run of the quickstart on this machine.

  docs/pictures/page.py build/bin/kernelmill docs/pictures

Needs Debian's chromium, chromium-driver and python3-selenium.
"""

import json
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
    ("page-search", "runs/search/search", "svg.tree a", False, 1280, 1000),
    ("page-slots-dark", "runs/first/lanes", "figure", True, 1120, 600),
]


ROW_SUM = """extern "C" void solve(const float* x, float* y, int rows, int cols) {
  constexpr int step = %d;
%s  for (int r = 0; r < rows; ++r) {
    %s sum = 0;
%s    for (int c = 0; c < cols; ++c) sum += x[static_cast<long>(r) * cols + c];
    y[r] = static_cast<float>(step > 0 ? sum : 2 * sum);
  }
}
"""
SIMD = "#pragma omp simd reduction(+ : sum)\n"
THREADS = "#pragma omp parallel for\n"
KERNELS = [("", "double", ""), ("", "float", SIMD), (THREADS, "double", ""), (THREADS, "float", SIMD)]


def search_script(home):
    """Members of a generation try one thing each; two get it wrong at times."""

    def reply(step, member):
        kernel = ROW_SUM % (step, *(KERNELS[(step + member) % 4] if step > 1 else KERNELS[0]))
        if member == 5:
            kernel = kernel.replace("sum = 0", "sum = 1")
        if member == 6:
            kernel = kernel.replace("extern", "exter")
        text = f"<think>\nTry step {step}.\n</think>\n<KERNEL>\n```cpp\n{kernel}```\n</KERNEL>\n"
        return {"prompt": f"step = {step - 1};", "member": member, "text": text}

    replies = [reply(step, member) for step in range(40, 1, -1) for member in range(8)]
    first = {"text": reply(1, 0)["text"]}
    path = pathlib.Path(home) / "search.json"
    path.write_text(json.dumps({"model": "steps", "latency_ms": 5, "replies": [first, *replies]}))
    return str(path)


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
        subprocess.run(
            [program, "search", "native/row_sum", "--policy", search_script(home), "--strategy", "islands", "--width"]
            + ["8", "--budget", "turns=96", f"run.dir={home}/runs/search", "profile.enabled=false"]
            + ["retrieval.enabled=false"],
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
