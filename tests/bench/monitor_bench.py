#!/usr/bin/python3
"""What looking costs: prints one table, and one JSON document with --json.

  1. a run with EPISODES live episodes: `ps --json`, the page's list, `top` at 10 Hz, the run's own cost
  2. a run at full speed with 0, 1 and 10 viewers and with 1,000 readers of the event stream
  3. how long after its commit a turn is in the event stream, in `watch`, and (with Chromium) in the page

    tests/bench/monitor_bench.py [--program build/bin/kernelmill] [--episodes 10000] [--seconds 20]

A viewer is what a page with the live episodes open does: one stream of turns and live totals, and a page of the
list once in 700 ms. Everything runs on this machine, viewers too: they take processor time from the run, so its own
processor time a turn says more than turns a second.
"""

import argparse
import fcntl
import http.client
import json
import os
import pathlib
import pty
import selectors
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.parse

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TICK = os.sysconf("SC_CLK_TCK")


def cpu(pid):
    """Seconds of processor that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def request(url, path):
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
    connection.request("GET", path)
    body = connection.getresponse().read()
    connection.close()
    return body


class Run:
    """A run whose policy answers at once, or after `latency_ms`, without a kernel: nothing is built."""

    def __init__(self, home, name, groups, members, turns, latency_ms, *more):
        script = pathlib.Path(home) / f"{name}.json"
        script.write_text(
            json.dumps({"model": "bench", "latency_ms": latency_ms, "replies": [{"text": "No kernel for this task."}]})
        )
        self.directory = f"{home}/runs/{name}"
        self.process = subprocess.Popen(
            [
                PROGRAM,
                "run",
                str(SOURCE / "configs/quickstart.json"),
                f"run.dir={self.directory}",
                'tasks.ids=["native/row_sum"]',
                f"tasks.groups={groups}",
                f"tasks.group_size={members}",
                f"tasks.max_turns={turns}",
                "episode.max_live=10000",
                f"policy.script={script}",
                "policy.timeout_ms=36000000",
                "episode.turn_deadline_ms=50000000",
                "episode.deadline_ms=500000000",
                "retrieval.enabled=false",
                *more,
                "--monitor",
                "0",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = []
        for line in self.process.stderr:
            said.append(line)
            if line.startswith("page: "):
                break
        else:
            sys.exit("monitor_bench: the run did not start: " + "".join(said))
        self.url = said[-1].split()[1]
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def turns(self):
        try:
            return pathlib.Path(self.directory, "metrics.jsonl").read_bytes().count(b'"turn_id"')
        except FileNotFoundError:
            return 0

    def end(self):
        self.process.send_signal(signal.SIGINT)
        time.sleep(1)
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def timed(work, count, pause):
    """Milliseconds of each."""
    result = []
    for _ in range(count):
        begin = time.monotonic()
        work()
        result.append((time.monotonic() - begin) * 1000)
        time.sleep(pause)
    return result


def spread(values):
    """Of milliseconds."""
    high = sorted(values)[round(0.95 * (len(values) - 1))]
    return (
        f"median {statistics.median(values):.0f} ms, {min(values):.0f} to {max(values):.0f}, "
        f"95 % within {high:.0f} (of {len(values)})"
    )


def top_cpu(root, seconds):
    """The share of a core that `top` takes in a terminal of 120 x 40, drawn ten times a second."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(PROGRAM, [PROGRAM, "top", "--root", root])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    drawn = 0
    until = time.monotonic() + 2
    begin, used = 0.0, 0.0
    while True:
        now = time.monotonic()
        if now > until:
            if begin:
                break
            begin, used, until = now, cpu(pid), now + seconds
        readable = selectors.DefaultSelector()
        readable.register(terminal, selectors.EVENT_READ)
        if readable.select(0.2):
            drawn += len(os.read(terminal, 1 << 20))
        readable.close()
    share = (cpu(pid) - used) / (time.monotonic() - begin)
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    os.close(terminal)
    assert drawn > 0, "top has drawn nothing"
    return share


def many_episodes(home, episodes, rows):
    run = Run(home, "many", episodes // 100, 100, 4, 3_000_000)
    ps = [PROGRAM, "ps", "--json", "--root", home + "/runs"]

    def live():
        return json.loads(subprocess.run(ps, capture_output=True, check=True).stdout)["live"]

    while live() < episodes:
        time.sleep(1)
    time.sleep(3)
    idle, begin = cpu(run.process.pid), time.monotonic()
    time.sleep(5)
    rest = (cpu(run.process.pid) - idle) / (time.monotonic() - begin)
    before = cpu(run.process.pid)
    values = timed(lambda: subprocess.run(ps, stdout=subprocess.DEVNULL, check=True), 15, 1.2)
    look = (cpu(run.process.pid) - before - rest * 15 * 1.4) / 15
    rows.append((f"`ps --json`, {episodes:,} live episodes: wall time", spread(values)))
    rows.append(("the run's processor time for a look", f"{look * 1000:.0f} ms"))
    rows.append(
        (
            "the page's list, 100 of them: wall time",
            spread(timed(lambda: request(run.url, "/api/v1/episodes?limit=100"), 10, 1.2)),
        )
    )
    rows.append(("`top`, drawn ten times a second: share of a core", f"{top_cpu(home + '/runs', 10) * 100:.1f} %"))
    run.end()


class Viewers:
    """Pages with the live episodes open, or bare readers of the event stream."""

    def __init__(self, url, pages, readers):
        self.stop = False
        self.bytes = 0
        self.threads = []
        parts = urllib.parse.urlsplit(url)
        self.streams = []
        for number in range(pages + readers):
            s = socket.create_connection((parts.hostname, parts.port), timeout=120)
            topics = "turns,live&most=100" if number < pages else "turns"  # as a page asks
            s.sendall(f"GET /api/v1/events?topics={topics} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
            s.setblocking(False)
            self.streams.append(s)
        self.start(self.read)
        for _ in range(pages):
            self.start(self.look, url)

    def start(self, what, *arguments):
        self.threads.append(threading.Thread(target=what, args=arguments))
        self.threads[-1].start()

    def read(self):
        selector = selectors.DefaultSelector()
        for s in self.streams:
            selector.register(s, selectors.EVENT_READ)
        while not self.stop:
            for key, _ in selector.select(0.2):
                try:
                    self.bytes += len(key.fileobj.recv(1 << 20))
                except BlockingIOError:
                    pass
        selector.close()

    def look(self, url):
        while not self.stop:
            request(url, "/api/v1/episodes?limit=100")
            time.sleep(0.7)

    def end(self):
        self.stop = True
        for x in self.threads:
            x.join()
        for s in self.streams:
            s.close()


def throughput(home, seconds, rows):
    """Side by side: each kind of audience in turn, twice, on the same run."""
    run = Run(home, "fast", 4000, 100, 4, 0)
    while run.turns() < 500:
        time.sleep(0.2)
    kinds = [
        ("no viewer", 0, 0),
        ("1 viewer", 1, 0),
        ("10 viewers", 10, 0),
        ("1,000 readers of the event stream", 0, 1000),
    ]
    seen = {name: [] for name, _, _ in kinds}
    for _ in range(2):
        for name, pages, readers in kinds:
            viewers = Viewers(run.url, pages, readers)
            time.sleep(2)
            turns, used, begin, got = run.turns(), cpu(run.process.pid), time.monotonic(), viewers.bytes
            time.sleep(seconds)
            turns = run.turns() - turns
            took, used = time.monotonic() - begin, cpu(run.process.pid) - used
            seen[name].append((turns / took, used / max(turns, 1) * 1e6, (viewers.bytes - got) / took / 1e6))
            viewers.end()
    for name, values in seen.items():
        rows.append(
            (
                f"{name}: turns a second; processor of the run a turn; read",
                "; ".join(f"{rate:.0f}, {each:.0f} us, {read:.1f} MB/s" for rate, each, read in values),
            )
        )
    text = request(run.url, "/metrics").decode()
    rows.append(
        (
            "events dropped for slow readers",
            next(x.split()[1] for x in text.splitlines() if x.startswith("kernelmill_events_dropped_total ")),
        )
    )
    run.end()


def latency(home, rows):
    """From a turn's commit to the reader of the page; three episodes, one turn in about 100 ms."""
    run = Run(home, "latency", 1, 3, 256, 250)
    name = "latency"
    late = []
    parts = urllib.parse.urlsplit(run.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=120) as s:
        s.sendall(f"GET /api/v1/events?topics=turns HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        for line in s.makefile("rb"):
            now = time.time()
            if line.startswith(b"data: "):
                late.append((now - json.loads(line[6:])["timestamp"]) * 1000)
            if len(late) >= 200:
                break
    rows.append(("from commit to the event stream", spread(late)))
    late = []
    begun = time.time() + 1  # what is there already is told at once
    with subprocess.Popen([PROGRAM, "watch", f"{home}/runs/{name}/g0.e0", "--json"], stdout=subprocess.PIPE) as watch:
        for line in watch.stdout:
            now = time.time()
            document = json.loads(line)
            if document.get("committed_at", 0) > begun:
                late.append((now - document["committed_at"]) * 1000)
            if len(late) >= 50:
                break
        watch.kill()
    rows.append(("from commit to `watch`", spread(late)))
    run.end()
    run = Run(home, "paged", 1, 3, 256, 250)  # Chromium takes its time to start
    late = in_the_page(f"{run.url}/#/runs/paged")
    if late:
        rows.append(("from commit to the page, drawn by Chromium", spread(late)))
    run.end()


def in_the_page(url):
    """Milliseconds from commits until the page has them; nothing where there is no browser."""
    sys.path.insert(0, str(SOURCE / "tests/integration/page"))
    try:
        import browsing
    except ImportError as why:
        print("no browser:", why, file=sys.stderr)
        return []
    with browsing.browser() as chrome:
        chrome.get(url)
        browsing.wait(chrome, "#latest li")
        chrome.set_script_timeout(600)
        return chrome.execute_async_script("""
            const [done] = arguments, late = [], list = document.querySelector('#latest ol');
            new MutationObserver((changes) => {
              const now = Date.now();
              for (const x of changes.flatMap((c) => [...c.addedNodes])) late.push(now - x.dataset.at * 1000);
              if (late.length >= 100) done(late);
            }).observe(list, {childList: true});""")


def main():
    global PROGRAM
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(SOURCE / "build/bin/kernelmill"))
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--only", choices=("many", "throughput", "latency"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    PROGRAM = options.program
    rows = [("processors; load before", f"{os.cpu_count()}; {os.getloadavg()[0]:.1f}")]
    with tempfile.TemporaryDirectory() as home:
        if options.only in (None, "many"):
            many_episodes(home, options.episodes, rows)
        if options.only in (None, "throughput"):
            throughput(home, options.seconds, rows)
        if options.only in (None, "latency"):
            latency(home, rows)
    rows.append(("load after", f"{os.getloadavg()[0]:.1f}"))
    if options.json:
        print(json.dumps(dict(rows), indent=2))
    else:
        print("| what | result |\n|---|---|")
        for name, value in rows:
            print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
