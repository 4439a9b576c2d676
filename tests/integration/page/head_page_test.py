#!/usr/bin/python3
"""A head whose two nodes stand in networks of their own, looked at from a fourth network: the page over TLS
with its token, and every command with the cluster's credentials, show both; a node that is killed is shown as
lost. Skipped where no network namespace can be made."""

import ctypes
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "fault" / "cluster"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "trackers"))
import serving  # noqa: E402
from lab import Lab, Unavailable  # noqa: E402
from receiver import Receiver  # noqa: E402
from serving import BROKEN, GOOD, PROGRAM, get, request  # noqa: E402

CLONE_NEWNET = 0x40000000
PATIENCE = 600  # seconds: other work may have the machine
TOKEN = "word-of-the-test"


def enter(namespace):
    """Moves this thread, and what it starts from here on, into a network."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/var/run/netns/{namespace}", "rb") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise Unavailable(os.strerror(ctypes.get_errno()))


def from_viewer(work):
    """A method of the tests that runs in the viewer's network."""

    def run(self, *arguments, **named):
        result = []

        def there():
            try:
                enter(self.lab.namespaces["viewer"])
                result.append((work(self, *arguments, **named), None))
            except BaseException as why:  # the caller raises it again
                result.append((None, why))

        thread = threading.Thread(target=there)
        thread.start()
        thread.join()
        [(value, why)] = result
        if why is not None:
            raise why
        return value

    return run


def wait(what, condition):
    until = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < until, what
        time.sleep(0.2)
    return found


class HeadPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(home.cleanup)
        cls.home = pathlib.Path(home.name)
        os.environ.update(
            HOME=home.name,
            XDG_CACHE_HOME=home.name + "/cache",
            XDG_STATE_HOME=home.name + "/state",
            NO_PROXY="*",
            no_proxy="*",
        )
        try:
            cls.lab = Lab(["head", "n1", "n2", "viewer"])
            cls.addClassCleanup(cls.lab.close)
            enter(cls.lab.namespaces["head"])
        except Unavailable as why:
            print(why)
            sys.exit(77)
        subprocess.run([PROGRAM, "cluster", "init"], check=True, stdout=subprocess.DEVNULL)
        token = cls.home / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        cls.address = cls.lab.addresses["head"] + ":7612"
        certificate, key = serving.certificate(home.name, cls.lab.addresses["head"])
        os.environ["SSL_CERT_FILE"] = certificate
        cls.page_address = cls.lab.addresses["head"] + ":7613"  # a network of its own has all ports free
        cls.head_words = [
            PROGRAM,
            "head",
            "--listen",
            cls.address,
            "--root",
            home.name + "/runs",
            "--monitor",
            cls.page_address,
            "--token-file",
            str(token),
            "--tls-certificate",
            certificate,
            "--tls-key",
            key,
        ]
        cls.head = cls.lab.start("head", cls.head_words, str(cls.home / "head.log"))
        cls.url = "https://" + cls.page_address
        wait("the page's URL", lambda: f"page: {cls.url}" in (cls.home / "head.log").read_text())
        cls.members = {
            name: cls.lab.start(
                name,
                [
                    PROGRAM,
                    "node",
                    "--head",
                    cls.address,
                    "--name",
                    name,
                    "--compilers",
                    "1",
                    "evaluation.python=/bin/false",
                ],
                str(cls.home / name),
            )
            for name in ("n1", "n2")
        }

    @from_viewer
    def ask(self, *what, **headers):
        """(status, text) of the page."""
        status, _, text = request(self.url, *what, **headers)
        return status, text

    def get(self, path):
        status, text = self.ask("GET", path, Authorization="Bearer " + TOKEN)
        document = json.loads(text)
        self.assertEqual(status, 200, document)
        return document

    def post(self, path, body, method="POST"):
        status, text = self.ask(method, path, body, Authorization="Bearer " + TOKEN)
        return status, json.loads(text)

    def states(self):
        return {x["node"]: x["state"] for x in self.get("/api/v1/nodes")["nodes"]}

    def submit(self, name, policy, *more):
        arguments = serving.held_arguments("", policy, members=2, turns=2, more=[f"run.name={name}", *more])[2:]
        subprocess.run(
            [PROGRAM, "submit", *(x for x in arguments if "run.dir" not in x), "--head", self.address],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    @from_viewer
    def look(self, *words):
        """What a command says of the head, asked from the viewer's network with the cluster's credentials."""
        words = [*words, "--head", self.address, *(["--json"] if "--once" not in words else [])]
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    # In this order: the last test kills what the others need.
    def test_1_every_view_shows_both_nodes(self):
        wait("both nodes serve", lambda: self.states() == {"n1": "serving", "n2": "serving"})
        self.assertEqual(self.ask("GET", "/api/v1/nodes")[0], 401)
        with self.assertRaises((http.client.HTTPException, ConnectionError)):  # without TLS nothing is said
            get(self.url.replace("https:", "http:"), "/api/v1/nodes")
        self.assertEqual(self.get("/api/v1/about")["head"], True)
        slots = wait(
            "their monitors answer",
            lambda: (
                len({x["node"] for x in self.get("/api/v1/gpus")["gpus"]}) == 2 and self.get("/api/v1/gpus")["gpus"]
            ),
        )
        self.assertEqual({x["node"] for x in slots}, {"n1", "n2"})
        self.assertTrue({"n1", "n2"} <= {x["node"] for x in self.get("/api/v1/actors")["actors"]})
        rows = {x["node"]: x for x in self.get("/api/v1/nodes")["nodes"]}
        for name in ("n1", "n2"):
            self.assertGreaterEqual(rows[name]["slots"], 1)
            self.assertGreaterEqual(rows[name]["cores"], 1)  # its own monitor says so
        metrics = self.ask("GET", "/metrics", Authorization="Bearer " + TOKEN)[1]
        self.assertIn('kernelmill_nodes{state="serving"} 2', metrics)
        self.assertIn('kernelmill_slots{state="idle"} ' + str(len(slots)), metrics)

    def test_2_a_run_is_followed_and_controlled_from_the_page(self):
        with serving.held_policy([BROKEN, GOOD]) as (policy, release):
            self.submit("followed", policy)
            live = wait("its episodes live", lambda: self.get("/api/v1/episodes")["episodes"])
            self.assertEqual({x["run"] for x in live}, {"followed"})
            verb = ("/api/v1/runs/followed/control", {"verb": "pause"})
            self.assertEqual(self.ask("POST", *verb)[0], 401)
            self.assertEqual(self.post(*verb)[0], 200)
            wait("it is paused", lambda: self.get("/api/v1/runs")["runs"][0]["state"] == "paused")
            self.assertEqual(self.post(verb[0], {"verb": "resume"})[0], 200)
            wait("it goes on", lambda: self.get("/api/v1/runs")["runs"][0]["state"] == "running")
            self.look_at_it_in_a_browser()
            self.look_at_it_by_commands()
            release(0)
            wait("its first turns", lambda: self.get("/api/v1/runs/followed")["turns"] == 2)
            release(1)
            wait("its end", lambda: self.get("/api/v1/runs")["runs"][0]["state"] == "finished")
        turns = self.get("/api/v1/runs/followed/episodes/g0.e0")["turns"]
        self.assertEqual(turns[0]["category"], "compile_error")
        self.assertIn(("correctness", "pass"), [(x["name"], x["status"]) for x in turns[1]["gates"]])
        self.look_back_by_commands()

    def look_at_it_by_commands(self):
        both = {"n1", "n2"}

        def rows(key, *words):
            return json.loads(self.look(*words))[key]

        self.assertEqual([(x["run"], x["state"]) for x in rows("runs", "runs")], [("followed", "running")])
        self.assertEqual({x["id"] for x in rows("episodes", "ps", "followed")}, {"g0.e0", "g0.e1"})
        self.assertEqual({x["node"] for x in rows("nodes", "node", "ls")}, both)
        self.assertEqual({x["node"] for x in rows("gpus", "gpu", "ls")}, both)
        self.assertTrue(both <= {x["node"] for x in rows("actors", "actor", "ls")})
        shown = rows("actors", "actor", "show", "gpu_runner")
        self.assertTrue(both <= {x["node"] for x in shown}, shown)
        frame = json.loads(self.look("top"))
        self.assertEqual({x["node"] for x in frame["nodes"]}, both)
        self.assertEqual([x["run"] for x in frame["runs"]], ["followed"])
        drawn = self.look("top", "--once")
        for name in both:
            self.assertIn(name, drawn)
        asked = "Nothing is starved: 2 requests are at the policy server"

        def explained():
            said = json.loads(self.look("explain", "followed"))
            return said if asked in said["findings"][0]["text"] else None

        why = wait(asked, explained)
        self.assertEqual((why["state"], why["live"]), ("running", 2))
        one = json.loads(self.look("explain", "followed/g0.e1"))
        self.assertIn("The policy server has its request for ", one["findings"][0]["text"])
        self.assertIn("2 episodes", self.look("logs", "followed"))

    def look_back_by_commands(self):
        watched = [json.loads(x) for x in self.look("watch", "followed/g0.e1").splitlines()]
        self.assertEqual([x["kind"] for x in watched], ["turn", "turn", "end"])
        self.assertEqual([x["category"] for x in watched[:1]], ["compile_error"])
        turns = json.loads(self.look("lineage", "followed/g0.e0"))["turns"]
        self.assertEqual(turns[1]["parent"], turns[0]["id"])
        funnel = {x["step"]: x["turns"] for x in json.loads(self.look("stats", "followed"))["funnel"]}
        self.assertEqual(funnel["built"], 2)
        why = json.loads(self.look("explain", "followed/g0.e0"))
        self.assertIn("It has ended after 2 turns: ", why["findings"][0]["text"])

    @from_viewer
    def look_at_it_in_a_browser(self):
        try:
            import browsing
        except ImportError as why:
            print("no browser:", why)
            return
        with browsing.browser() as chrome:
            chrome.get(f"{self.url}/#token={TOKEN}")
            browsing.wait(chrome, "td a", "followed")
            chrome.get(f"{self.url}/#/live")
            browsing.wait(chrome, "td a", "g0.e0")
            chrome.get(f"{self.url}/#/system")
            for name in ("n1", "n2"):
                browsing.wait(chrome, "td", name)
            browsing.wait(chrome, "button", "Drain")

    def test_3_the_page_outlives_a_restart_of_the_head(self):
        try:
            import browsing
        except ImportError as why:
            self.skipTest(str(why))
        with serving.held_policy([BROKEN, GOOD]) as (policy, release):
            self.submit("again", policy)
            wait("its episodes live", lambda: self.get("/api/v1/episodes")["episodes"])
            self.watch_it_through_a_restart(browsing, release)
        wait(
            "its end", lambda: {x["name"]: x["state"] for x in self.get("/api/v1/runs")["runs"]}["again"] == "finished"
        )

    @from_viewer
    def watch_it_through_a_restart(self, browsing, release):
        with browsing.browser() as chrome:
            chrome.get(f"{self.url}/#token={TOKEN}")
            browsing.press(chrome, "td a", "again")
            browsing.wait(chrome, "#connection", "live")
            self.head.send_signal(signal.SIGKILL)
            browsing.wait(chrome, "#connection", "lost")
            self.head.wait()
            type(self).head = self.lab.start("head", self.head_words, str(self.home / "head.log"))
            browsing.wait(chrome, "#connection", "live")
            release(0)  # nothing is pressed from here on
            browsing.wait(chrome, "#latest li", "again/g0.e0.t0")
            release(1)
            browsing.wait(chrome, ".card", "finished")
            chrome.get(f"{self.url}/#/system")
            for name in ("n1", "n2"):
                browsing.wait(chrome, "td", name)

    def test_4_policy_servers_come_and_go(self):
        with serving.held_policy([GOOD]) as (policy, _):
            refused = self.post("/api/v1/policies", {"url": policy, "api_key_file": "/etc/passwd"})
            self.assertEqual((refused[0], refused[1]["error"]["category"]), (400, "bad_request"))
            server = {"url": policy, "name": "held", "kind": "openai", "model": "held"}
            self.assertEqual(self.post("/api/v1/policies", server)[0], 200)

            def named():
                return [(x["name"], x["model"]) for x in self.get("/api/v1/policies")["servers"]]

            wait("it is listed", lambda: named() == [("held", "held")])
            self.assertEqual(self.post("/api/v1/policies/held", None, "DELETE")[0], 200)
            wait("it is gone", lambda: not self.get("/api/v1/policies")["servers"])

    def test_5_a_node_that_is_drained_leaves_and_one_that_is_killed_is_lost(self):
        self.assertEqual(self.post("/api/v1/nodes/none/control", {"verb": "drain"})[0], 404)
        self.assertEqual(self.post("/api/v1/nodes/n1/control", {"verb": "stop"})[0], 400)
        self.assertEqual(self.post("/api/v1/nodes/n1/control", {"verb": "drain"})[0], 200)
        wait("n1 has left", lambda: "n1" not in self.states())
        self.assertEqual(self.members["n1"].wait(), 0)
        with Receiver() as receiver, serving.held_policy([BROKEN, GOOD]) as (policy, _):
            self.submit("left", policy, f"hooks.url={receiver.url}")
            wait("it lives", lambda: self.get("/api/v1/episodes")["episodes"])
            log = self.home / "runs/left/logs/run.log"
            wait("the hooks know n2", lambda: "watches the head's nodes" in log.read_text())
            self.members["n2"].send_signal(signal.SIGKILL)
            wait("n2 is lost", lambda: self.states().get("n2") == "lost")
            told = [json.loads(x[2]) for x in receiver.wait(lambda x: any(b"node_lost" in y[2] for y in x), PATIENCE)]
            self.assertIn(("node_lost", "n2", "left"), [(x["event"], x.get("node"), x["run"]) for x in told])


if __name__ == "__main__":
    unittest.main(verbosity=2)
