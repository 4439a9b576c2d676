#!/usr/bin/python3
"""Many clients at once at one `kernelmill serve`: how long they wait, and that all are answered.

    tests/bench/serve_load.py build/bin/kernelmill [--clients 200] [--cache]

Each client sends one candidate and waits for it on a connection of its own. All send the same
source, so that it is the server that is measured and not the compiler; with --cache all but one are
answered from the cache. Prints one line of JSON; nothing is asserted about time.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "launch" / "python"))

import kernelmill  # noqa: E402

KERNEL = """extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    double s = 0;
    for (int c = 0; c < cols; ++c) s += x[(long)r * cols + c];
    y[r] = (float)s;
  }
}
"""


def main():
    words = argparse.ArgumentParser()
    words.add_argument("program")
    words.add_argument("--clients", type=int, default=200)
    words.add_argument("--cache", action="store_true")
    asked = words.parse_args()
    threading.stack_size(256 << 10)
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_CACHE_HOME"] = home
        with kernelmill.serve("cpu", program=asked.program, tasks=str(SOURCE / "configs" / "tasks"),
                              options=["--no-timing", "--queue", "100000", "--connections",
                                       "10000"]) as client:
            client.evaluate("native/row_sum", KERNEL, cache=asked.cache)  # builds, and warms up
            seconds, states = [], []
            ready = threading.Barrier(asked.clients + 1)

            def one():
                ready.wait()
                begun = time.monotonic()
                _, _, answer = client._once(
                    "POST", "/v1/evaluate",
                    {"task": "native/row_sum", "source": KERNEL, "wait": True,
                     "cache": "allow" if asked.cache else "refuse"}, {}, 3600)
                seconds.append(time.monotonic() - begun)
                states.append(answer.get("state", answer))

            threads = [threading.Thread(target=one) for _ in range(asked.clients)]
            for x in threads:
                x.start()
            ready.wait()
            begun = time.monotonic()
            for x in threads:
                x.join()
            whole = time.monotonic() - begun
            seconds.sort()
            print(json.dumps({
                "clients": asked.clients, "cache": asked.cache, "cores": os.cpu_count(),
                "answered": len(seconds), "done": states.count("done"),
                "seconds": round(whole, 3), "per_second": round(len(seconds) / whole, 1),
                "p50_s": round(seconds[len(seconds) // 2], 3),
                "p99_s": round(seconds[int(len(seconds) * 0.99)], 3)}))


if __name__ == "__main__":
    main()
