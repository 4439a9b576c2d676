"""Starts `kernelmill page` and runs for the tests of the page."""

import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import urllib.parse

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = os.path.join(os.environ["KERNELMILL_BIN_DIR"], "kernelmill")

SIGNATURE = 'extern "C" void solve(const float* x, float* y, int rows, int cols)'
BROKEN = SIGNATURE + " { nonsense }\n"
GOOD = SIGNATURE + """ {
  for (int r = 0; r < rows; ++r) {
    double s = 0;
    for (int c = 0; c < cols; ++c) s += x[(long)r * cols + c];
    y[r] = (float)s;
  }
}
"""
# What a hostile policy may say: markup, terminal escapes, and one line of 10 MB.
HOSTILE = ("<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
           "\x1b]0;owned\x07\x1b[2J\u202egnp.exe " + "A" * 10_000_000)


def write_script(folder, replies, latency_ms=5):
    path = pathlib.Path(folder) / "script.json"
    path.write_text(json.dumps({"model": "test", "latency_ms": latency_ms, "replies": replies}))
    return path


def replies(*texts, task="native/row_sum"):
    """A reply a turn; a kernel becomes a completion."""
    return [{"task": task, "turn": i, "text": text if text.startswith("<") or "\x1b" in text else
             f"<think>\nTurn {i}.\n</think>\n<KERNEL>\n```cpp\n{text}```\n</KERNEL>\n"}
            for i, text in enumerate(texts)]


def run_arguments(directory, script, members=2, turns=2, more=()):
    return [PROGRAM, "run", str(SOURCE / "configs" / "quickstart.json"), f"run.dir={directory}",
            'tasks.ids=["native/row_sum"]', f"tasks.group_size={members}",
            f"tasks.max_turns={turns}", f"policy.script={script}", "policy.sampling.max_tokens=10000000",
            "policy.max_response_bytes=100000000", "retrieval.enabled=false",
            "evaluation.timing.max_blocks=5", *more]


@contextlib.contextmanager
def page(root, *options):
    """The URL of a page of `root`."""
    process = subprocess.Popen([PROGRAM, "page", str(root), *options], stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http"), url
        yield url
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def request(url, method, path, body=None, **headers):
    """(status, headers, text)."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def get(url, path, **headers):
    """(status, document)."""
    status, _, text = request(url, "GET", path, **headers)
    return status, json.loads(text)
