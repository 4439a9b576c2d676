"""Starts `kernelmill page` and runs for the tests of the page."""

import contextlib
import http.client
import http.server
import json
import os
import pathlib
import subprocess
import threading
import urllib.parse

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = os.path.join(os.environ["KERNELMILL_BIN_DIR"], "kernelmill")

SIGNATURE = 'extern "C" void solve(const float* x, float* y, int rows, int cols)'
BROKEN = SIGNATURE + " { nonsense }\n"
GOOD = (
    SIGNATURE
    + """ {
  for (int r = 0; r < rows; ++r) {
    double s = 0;
    for (int c = 0; c < cols; ++c) s += x[(long)r * cols + c];
    y[r] = (float)s;
  }
}
"""
)
# What a hostile policy may say: markup, terminal escapes, and one line of 10 MB.
HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    "\x1b]0;owned\x07\x1b[2J\u202egnp.exe " + "A" * 10_000_000
)


def write_script(folder, replies, latency_ms=5):
    path = pathlib.Path(folder) / "script.json"
    path.write_text(json.dumps({"model": "test", "latency_ms": latency_ms, "replies": replies}))
    return path


def replies(*texts, task="native/row_sum"):
    """A reply a turn; a kernel becomes a completion."""
    return [
        {
            "task": task,
            "turn": i,
            "text": text
            if text.startswith("<") or "\x1b" in text
            else f"<think>\nTurn {i}.\n</think>\n<KERNEL>\n```cpp\n{text}```\n</KERNEL>\n",
        }
        for i, text in enumerate(texts)
    ]


# Other work may have the machine: no deadline is what a test is about.
PATIENT = [
    "policy.timeout_ms=1200000",
    "compile.deadline_ms=600000",
    "evaluation.deadline_ms=600000",
    "episode.turn_deadline_ms=2400000",
    "episode.deadline_ms=6000000",
    "evaluation.timing.half_width=0.2",
]


def run_arguments(directory, script, members=2, turns=2, more=()):
    return [
        PROGRAM,
        "run",
        str(SOURCE / "configs" / "quickstart.json"),
        f"run.dir={directory}",
        'tasks.ids=["native/row_sum"]',
        f"tasks.group_size={members}",
        f"tasks.max_turns={turns}",
        f"policy.script={script}",
        "policy.sampling.max_tokens=10000000",
        "policy.max_response_bytes=100000000",
        "retrieval.enabled=false",
        *PATIENT,
        *more,
    ]


def search_arguments(directory, policy, turns, strategy="tree", more=()):
    """A search with two episodes a generation; `policy` is a script, or the address of a server."""
    return [
        PROGRAM, "search", "native/row_sum", "--policy", str(policy), "--width", "2", "--budget", f"turns={turns}",
        "--strategy", strategy, f"run.dir={directory}", "search.evaluations=1", "search.fresh=0",
        "profile.enabled=false", "retrieval.enabled=false", *PATIENT, *more,
    ]  # fmt: skip


def search_replies(steps):
    """Each kernel that a prompt shows is answered by the next one; member 1 begins with a broken one."""

    def reply(step):
        kernel = GOOD.replace("double s = 0;", f"constexpr int step = {step};\n    double s = 0;")
        kernel = kernel.replace("(float)s", "(float)(step > 0 ? s : 2 * s)")
        return f"<think>\nTry step {step}.\n</think>\n<KERNEL>\n```cpp\n{kernel}```\n</KERNEL>\n"

    broken = {"member": 1, "text": f"<KERNEL>\n```cpp\n{BROKEN}```\n</KERNEL>\n"}
    later = [{"prompt": f"step = {step};", "text": reply(step + 1)} for step in range(steps, 0, -1)]
    return [{"text": reply(1)}, broken, *later]


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
        process.wait(300)  # other work may have the machine
        process.stdout.close()


@contextlib.contextmanager
def monitored(arguments):
    """(process, URL of its own page) of a run; it is ended where the test has failed meanwhile."""
    process = subprocess.Popen(
        [*arguments, "--monitor", "0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    rest = threading.Thread(target=process.stderr.read)  # so that the run never waits for a reader
    try:
        url = next(line for line in process.stderr if line.startswith("page: ")).split()[1]
        rest.start()
        yield process, url
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if rest.ident is not None:
            rest.join()
        process.stderr.close()


def completion(text):
    """A kernel as a model would say it; bytes are said as they are, whatever they are."""
    if isinstance(text, bytes):
        return BYTES
    return f"<KERNEL>\n```cpp\n{text}```\n</KERNEL>\n"


BYTES = "the bytes stand here"  # until the answer is written


@contextlib.contextmanager
def held_policy(texts):
    """(base URL, release): an OpenAI-compatible server that answers turn N with texts[N], once
    `release(N)` was called. So a test decides how far a run is, on however slow a machine."""
    gates = [threading.Event() for _ in texts]

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, document, raw=b""):
            body = json.dumps(document).encode().replace(BYTES.encode(), raw)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # a run that was ended asks no more
                self.wfile.write(body)

        def do_GET(self):  # noqa: N802
            self.answer({"object": "list", "data": [{"id": "held", "object": "model"}]})

        def do_POST(self):  # noqa: N802
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            turn = sum(x["role"] == "assistant" for x in asked["messages"])
            gates[turn].wait()
            self.answer(
                {
                    "id": "x",
                    "object": "chat.completion",
                    "model": "held",
                    "choices": [
                        {
                            "index": 0,
                            "finish_reason": "stop",
                            "message": {"role": "assistant", "content": completion(texts[turn])},
                        }
                    ],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                },
                texts[turn] if isinstance(texts[turn], bytes) else b"",
            )

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", lambda turn: gates[turn].set()
    finally:
        for gate in gates:
            gate.set()
        server.shutdown()
        thread.join()
        server.server_close()


def held_arguments(directory, url, members=2, turns=2, more=()):
    """A run whose policy is held_policy's."""
    arguments = [x for x in run_arguments(directory, "", members, turns) if "policy.script" not in x]
    return [
        *arguments,
        "policy.kind=openai",
        f"policy.base_url={url}",
        "policy.model=held",
        "policy.sampling.logprobs=false",
        *more,
    ]


def request(url, method, path, body=None, **headers):
    """(status, headers, text)."""
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=300)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(data)))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who refuses may close before all is sent
            connection.endheaders(data)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def certificate(folder, address):
    """(certificate, key) of a server at this address, which SSL_CERT_FILE makes known to requests."""
    key, made = (str(pathlib.Path(folder) / x) for x in ("page-key.pem", "page-cert.pem"))
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            key,
            "-out",
            made,
            "-days",
            "2",
            "-subj",
            f"/CN={address}",
            "-addext",
            f"subjectAltName=IP:{address}",
        ],
        check=True,
        capture_output=True,
    )
    return made, key


def get(url, path, **headers):
    """(status, document)."""
    status, _, text = request(url, "GET", path, **headers)
    return status, json.loads(text)
