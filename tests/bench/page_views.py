#!/usr/bin/python3
"""How long the page takes to show each view of a large run: one table, milliseconds.

    build/bin/kernelmill run quickstart run.name=first
    build-bench/bench/multiply_run runs/first runs/big 157     # 10,048 episodes
    tests/bench/page_views.py runs --run big --other first [--program build/bin/kernelmill] [--times 5]

"asked first": the view's requests one after the other, of a server that has just begun to answer. "drawn": in
Chromium, from the change of the address until the view's rows or pictures are in the page and the next frame
begins; the first is the first of that view since the server began.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/integration/page"))

DRAWN = """
const [place, what, done] = arguments;
location.hash = '#/nowhere';
setTimeout(() => {
  const begin = performance.now();
  location.hash = place;
  const look = () => {
    if (document.querySelector(what)) requestAnimationFrame(() => done(performance.now() - begin));
    else if (performance.now() - begin > 30000) done(null);
    else setTimeout(look, 1);
  };
  look();
}, 500);
"""


def views(run, other):
    """Name, address, requests, and a selector of what is there once the view is drawn."""
    of_run, api, page = f"#/runs/{run}", f"/api/v1/runs/{run}", "?limit=100"
    rows = "main tbody tr"
    return [
        ("runs", "#/runs", [f"/api/v1/runs{page}"], rows),
        ("run", of_run, [api, f"{api}/positions", f"{api}/tasks?limit=12&sort=-turns"], "main figure circle"),
        ("tasks", f"{of_run}/tasks", [f"{api}/tasks{page}"], rows),
        ("episodes", f"{of_run}/episodes", [f"{api}/episodes{page}"], rows),
        ("later episodes", f"{of_run}/episodes?offset=5000", [f"{api}/episodes{page}&offset=5000"], rows),
        ("sorted", f"{of_run}/episodes?sort=-best_reward", [f"{api}/episodes{page}&sort=-best_reward"], rows),
        ("filtered", f"{of_run}/episodes?where=reward%3E1", [f"{api}/episodes{page}&where=reward%3E1"], rows),
        ("one episode", f"{of_run}/episodes/g1000.e0", [f"{api}/episodes/g1000.e0"], "main pre"),
        ("groups", f"{of_run}/groups", [f"{api}/groups?limit=50"], rows),
        ("violations", f"{of_run}/findings", [f"{api}/findings{page}"], rows),
        ("slots", f"{of_run}/lanes", [f"{api}/lanes?limit=400"], "main figure"),
        ("configuration", f"{of_run}/config", [f"{api}/config"], "main pre"),
        ("kernels", "#/kernels", [f"/api/v1/kernels{page}"], rows),
        ("compare", f"#/compare?a={other}&b={run}", [f"/api/v1/compare?a={other}&b={run}"], "main figure circle"),
    ]


class Server:
    def __init__(self, program, root):
        self.process = subprocess.Popen([program, "page", root], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def asked(program, root, requests):
    with Server(program, root) as server:
        begin = time.monotonic()
        for path in requests:
            urllib.request.urlopen(server.url + path).read()
        return 1000 * (time.monotonic() - begin)


def drawn(chrome, place, what, times):
    result = [chrome.execute_async_script(DRAWN, place, what) for _ in range(times)]
    if None in result:
        sys.exit(f"failed to draw {place}: there is no {what}")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", help="the folder of runs")
    parser.add_argument("--run", required=True, help="the large run, by its folder")
    parser.add_argument("--other", required=True, help="a run to compare it with")
    parser.add_argument("--program", default=str(SOURCE / "build/bin/kernelmill"))
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    import browsing  # of tests/integration/page; it needs Chromium

    print(f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} processors, n = {options.times}")
    print(f"{'view':16}{'asked first':>12}{'drawn first':>12}{'median':>8}{'worst':>8}")
    all_views = views(options.run, options.other)
    first = {name: asked(options.program, options.root, requests) for name, _, requests, _ in all_views}
    with Server(options.program, options.root) as server:
        chrome = browsing.browser(1280, 900)
        chrome.set_script_timeout(60)
        try:
            chrome.get(server.url)
            for name, place, _, what in all_views:
                x = drawn(chrome, place, what, options.times)
                print(f"{name:16}{first[name]:12.0f}{x[0]:12.0f}{statistics.median(x):8.0f}{max(x):8.0f}", flush=True)
        finally:
            chrome.quit()
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
