#!/usr/bin/python3
"""The page's JSON API, event stream, metrics and locks, asked by bare requests."""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import serving  # noqa: E402
from serving import BROKEN, GOOD, HOSTILE, PROGRAM, SOURCE, get, request  # noqa: E402


@contextlib.contextmanager
def stream(url, path, **headers):
    """The lines of an event stream, as they come."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=300)
    try:
        connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        yield connection.getresponse()
    finally:
        connection.close()


def events(url, path, most, **headers):
    """The first events of a stream: (name, id, document)."""
    with stream(url, path, **headers) as lines:
        return read_events(lines, most)


def read_events(lines, most):
    """The next events of an open stream."""
    result, fields = [], {}
    for line in lines:
        line = line.decode().rstrip("\n")
        if line.startswith(("id: ", "event: ", "data: ")):
            name, value = line.split(": ", 1)
            fields[name] = value
        elif not line and "event" in fields:
            result.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
            fields = {}
            if len(result) == most:
                break
    return result


class Page(unittest.TestCase):
    """A finished run and a page of its folder."""

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        os.environ["XDG_CACHE_HOME"] = cls.home.name + "/cache"
        cls.root = pathlib.Path(cls.home.name) / "runs"
        cls.root.mkdir()
        script = serving.write_script(cls.home.name, serving.replies(BROKEN, GOOD, HOSTILE))
        subprocess.run(serving.run_arguments(cls.root / "first", script, turns=3), check=True, capture_output=True)
        cls.serving = serving.page(cls.root)
        cls.url = cls.serving.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.serving.__exit__(None, None, None)
        cls.home.cleanup()

    def ok(self, path, **headers):
        status, document = get(self.url, path, **headers)
        self.assertEqual(status, 200, document)
        return document

    def refused(self, status, category, *what, **headers):
        got, _, text = request(self.url, *what, **headers)
        self.assertEqual((got, json.loads(text)["error"]["category"]), (status, category), text)

    # -- documents -------------------------------------------------------------------------------

    def test_runs_and_their_stats(self):
        [run] = self.ok("/api/v1/runs")["runs"]
        self.assertEqual((run["name"], run["state"], run["turns"]), ("first", "finished", 6))
        stats = self.ok("/api/v1/runs/first")
        funnel = {x["step"]: x["turns"] for x in stats["funnel"]}
        self.assertEqual((stats["turns"], funnel["built"], funnel["correct"]), (6, 2, 2))

    def test_episodes_are_filtered_sorted_and_paged(self):
        every = self.ok("/api/v1/runs/first/episodes?sort=-id")
        self.assertEqual([x["id"] for x in every["episodes"]], ["g0.e1", "g0.e0"])
        self.assertEqual(every["episodes"][0]["turns"], 3)
        page = self.ok("/api/v1/runs/first/episodes?sort=id&offset=1&limit=1")
        self.assertEqual(([x["id"] for x in page["episodes"]], page["matching"]), (["g0.e1"], 2))
        none = self.ok("/api/v1/runs/first/episodes?where=" + urllib.parse.quote("turns>3"))
        self.assertEqual((none["matching"], none["total"]), (0, 2))

    def test_an_episode_turn_by_turn_with_hostile_words_cut_and_whole(self):
        turns = self.ok("/api/v1/runs/first/episodes/g0.e0")["turns"]
        self.assertEqual([x["category"] for x in turns][0], "compile_error")
        self.assertIn("nonsense", turns[0]["build"]["log"]["text"])
        self.assertIn("nonsense", turns[0]["candidate"]["text"])
        self.assertEqual([g["name"] for g in turns[1]["gates"]][:2], ["format", "build"])
        said = turns[2]["completion"]
        self.assertTrue(said["cut"])
        self.assertGreater(said["bytes"], 10_000_000)
        self.assertLessEqual(len(said["text"]), 200_000)
        status, headers, text = request(self.url, "GET", "/api/v1/runs/first/turns/g0.e0.t2/completion")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; charset=utf-8"))
        self.assertIn("attachment", headers["Content-Disposition"])
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(len(text.encode()), said["bytes"])

    def test_lineage_positions_lanes_findings_and_explanations(self):
        turns = self.ok("/api/v1/runs/first/episodes/g0.e0/lineage")["turns"]
        self.assertEqual(turns[1]["parent"], turns[0]["id"])
        # A right turn that a busy machine could not time has no reward.
        lines = [json.loads(x) for x in (self.root / "first" / "metrics.jsonl").read_text().splitlines()]
        paid = [(x["turn"], x["reward"]) for x in lines if x["kind"] == "turn" and x["reward"] is not None]
        self.assertGreaterEqual(len(paid), 4)
        positions = self.ok("/api/v1/runs/first/positions")
        for step in positions["reward"]:
            here = [reward for turn, reward in paid if turn == step["turn"] - 1]
            self.assertEqual(step["count"], len(here))
            self.assertAlmostEqual(step["mean"], sum(here) / len(here))
            self.assertTrue(step["low"] <= step["mean"] <= step["high"])
        self.assertEqual([x["turn"] for x in positions["reward"]], sorted({turn + 1 for turn, _ in paid}))
        self.assertLessEqual({x["turn"] for x in positions["speedup"]}, {2})
        for part in self.ok("/api/v1/runs/first")["time"]:
            self.assertGreaterEqual(part["wait_seconds"], 0)
            self.assertGreaterEqual(part["work_seconds"], 0)
        lanes = self.ok("/api/v1/runs/first/lanes")["evaluations"]
        self.assertEqual({x["turn"] for x in lanes}, {"g0.e0.t1", "g0.e1.t1"})
        self.assertTrue(all(x["begin"] < x["end"] for x in lanes))
        self.assertIn("findings", self.ok("/api/v1/runs/first/findings"))
        self.ok("/api/v1/runs/first/explain")

    def test_every_way_to_ask_that_the_document_names_is_there(self):
        text = (SOURCE / "docs" / "reference" / "page-openapi.json").read_text()
        said = subprocess.run(
            [PROGRAM, "__reference", "page-openapi"], capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual(
            said, text, "run: build/bin/kernelmill __reference page-openapi > docs/reference/page-openapi.json"
        )
        parts = {"run": "first", "episode": "g0.e0", "turn": "g0.e0.t1", "part": "candidate"}
        needed = {"/api/v1/compare": "?a=first/g0.e0&b=first/g0.e1"}
        for path, methods in json.loads(text)["paths"].items():
            if "get" not in methods or path == "/api/v1/events":
                continue
            with self.subTest(path):
                status, _, answer = request(self.url, "GET", path.format(**parts) + needed.get(path, ""))
                if path.endswith("/search"):  # the run is none, which is another answer than an unknown path
                    self.assertEqual(status, 404, answer)
                    self.assertIn("is no search", answer)
                else:
                    self.assertEqual(status, 200, answer)
        self.assertEqual(request(self.url, "GET", "/api/v1/openapi.json")[2], text)

    def test_groups_and_what_two_sides_differ_by(self):
        [group] = self.ok("/api/v1/runs/first/groups")["groups"]
        self.assertEqual(
            (group["group"], group["task"], group["members"], group["ended"], group["turns"]),
            ("g0", "native/row_sum", 2, 2, 6),
        )
        self.assertEqual([x["id"] for x in group["episodes"]], ["g0.e0", "g0.e1"])
        rewards = [x["best_reward"] for x in group["episodes"]]
        self.assertAlmostEqual(group["reward"], sum(rewards) / 2)
        self.assertEqual((group["low"], group["high"]), (min(rewards), max(rewards)))
        self.assertEqual(self.ok("/api/v1/runs/first/groups?where=members%3E2")["matching"], 0)
        for a, b, kind in (
            ("first", "first", "runs"),
            ("first/g0", "first/g0", "groups"),
            ("first/g0.e0", "first/g0.e1", "episodes"),
            ("first/g0.e0.t0", "first/g0.e0.t1", "turns"),
        ):
            mine = self.ok(f"/api/v1/compare?a={a}&b={b}")
            said = subprocess.run(
                [PROGRAM, "compare", f"{self.root}/{a}", f"{self.root}/{b}", "--json"], capture_output=True, check=True
            )
            self.assertEqual(mine["kind"], kind)
            self.assertEqual({"schema_version": 1, **mine}, json.loads(said.stdout))
        [code] = [x for x in mine["groups"] if x["group"] == "code"]
        self.assertIn("+", code["diff"])
        self.refused(400, "usage", "GET", "/api/v1/compare?a=first&b=first/g0")
        self.refused(400, "usage", "GET", "/api/v1/compare?a=first/nonsense&b=first")
        self.refused(404, "not_found", "GET", "/api/v1/compare?a=first/g7&b=first/g0")
        self.refused(404, "not_found", "GET", "/api/v1/compare?a=..&b=first")
        self.refused(404, "not_found", "GET", "/api/v1/compare?a=first")

    def test_what_is_unknown_is_named(self):
        self.refused(400, "unknown_parameter", "GET", "/api/v1/runs?colour=red")
        self.refused(400, "bad_query", "GET", "/api/v1/runs?limit=many")
        self.refused(400, "usage", "GET", "/api/v1/runs/first/episodes?where=colour=red")
        self.refused(400, "bad_query", "GET", "/api/v1/events?topics=gossip")
        self.refused(404, "not_found", "GET", "/api/v1/runs/second")
        self.refused(404, "not_found", "GET", "/api/v1/runs/first/episodes/g9.e9/lineage")
        for name in ("..", "%2e%2e%2fetc", ".hidden", "%2Fetc"):
            status, _, _ = request(self.url, "GET", f"/api/v1/runs/{name}")
            self.assertEqual(status, 404, name)

    # -- events and metrics ----------------------------------------------------------------------

    def test_a_reader_goes_on_where_it_left(self):
        text = (self.root / "first" / "metrics.jsonl").read_text()
        lines = [json.loads(x) for x in text.splitlines()]
        every = events(self.url, "/api/v1/events?since=first%3D0", len(lines))
        self.assertEqual([x[2].get("turn_id") for x in every], [x.get("turn_id") for x in lines])
        later = events(self.url, "/api/v1/events", len(lines) - 2, Last_Event_ID=every[1][1])
        self.assertEqual(later, every[2:])
        self.refused(400, "bad_query", "GET", "/api/v1/events", Last_Event_ID="nonsense")

    def test_a_place_in_a_run_that_came_while_another_reads_is_a_place_in_it(self):
        late = self.root / "late"
        with stream(self.url, "/api/v1/events?topics=runs") as other:
            while not other.readline().startswith(b"retry: "):
                pass
            shutil.copytree(self.root / "first", late)
            self.addCleanup(shutil.rmtree, late)
            journal = late / "metrics.jsonl"
            before = journal.stat().st_size
            line = json.loads(journal.read_text().splitlines()[0]) | {"turn_id": "the one behind it"}
            with journal.open("a") as to:
                to.write(json.dumps(line, separators=(",", ":")) + "\n")
            [told] = events(self.url, f"/api/v1/events?run=late&since=late%3D{before}", 1)
            self.assertEqual(told[2]["turn_id"], "the one behind it")

    def test_the_end_of_a_run_is_told_behind_its_last_turn(self):
        # One that is laid out when the page looks, and has ended when it looks again.
        short, other = self.root / "short", self.root / "then_another"
        for place in (short, other):
            self.addCleanup(shutil.rmtree, place)
        with stream(self.url, "/api/v1/events?topics=turns,runs") as lines:
            while not lines.readline().startswith(b"retry: "):
                pass
            shutil.copytree(self.root / "first", short, ignore=shutil.ignore_patterns("metrics.jsonl"))
            self.assertEqual([x[0] for x in read_events(lines, 1)], ["run"])
            shutil.copy(self.root / "first" / "metrics.jsonl", short)
            told = read_events(lines, 1)
            shutil.copytree(self.root / "first", other)
            while told[-1][2] != {"run": other.name, "live": False}:
                told += read_events(lines, 1)
        ends = [x[0] == "run" for x in told if x[2]["run"] == short.name]
        self.assertEqual((ends[0], ends[-1]), (False, True))

    def test_a_reader_that_does_not_read_loses_the_oldest_and_is_told_how_many(self):
        noisy = self.root / "noisy"
        shutil.copytree(self.root / "first", noisy)
        self.addCleanup(shutil.rmtree, noisy)
        journal = noisy / "metrics.jsonl"
        line = journal.read_text().splitlines()[0] + "\n"
        before = journal.stat().st_size
        with journal.open("a") as to:
            to.write(line)
        with stream(self.url, f"/api/v1/events?run=noisy&since=noisy%3D{before}") as file:
            while not file.readline().startswith(b"event: turn"):  # it has what it missed: from now on it is told
                pass
            written = 0
            while self.dropped() == 0:  # sockets hold some megabytes
                with journal.open("a") as to:
                    to.write(line * 2000)
                written += 2000
            # At once: a reader that takes nothing for half a minute is cut.
            got = lost = 0
            for words in file:
                got += words == b"event: turn\n"
                if words.startswith(b'data: {"dropped":'):
                    lost += json.loads(words[6:])["dropped"]
                if got + lost == written:
                    break
            self.assertGreater(lost, 0)
            self.assertGreater(got, 0)
            self.assertEqual(lost, self.dropped())
        # A client that comes back takes as long as it likes, and loses nothing.
        lines = len(journal.read_text().splitlines())
        every = events(self.url, "/api/v1/events?run=noisy&since=noisy%3D0", lines)
        self.assertEqual({x[0] for x in every}, {"turn", "group"})

    def test_a_reader_that_wants_few_turns_a_second_gets_the_newest_and_the_number_of_the_others(self):
        busy = self.root / "busy"
        shutil.copytree(self.root / "first", busy)
        self.addCleanup(shutil.rmtree, busy)
        journal = busy / "metrics.jsonl"
        line = json.loads(journal.read_text().splitlines()[0])
        lines = [json.dumps(line | {"turn_id": f"g0.e0.t{i}"}, separators=(",", ":")) for i in range(500)]
        before = journal.stat().st_size
        with stream(self.url, f"/api/v1/events?run=busy&most=40&since=busy%3D{before}") as file:
            with journal.open("ab", buffering=0) as to:  # one write, so that few looks find all of it
                to.write(("\n".join(lines) + "\n").encode())
            seen, lost = [], 0
            for words in file:
                data = json.loads(words[6:]) if words.startswith(b"data: ") else {}
                lost += data.get("dropped", 0)
                if "turn_id" in data:
                    seen.append(data["turn_id"])
                if "g0.e0.t499" in seen:
                    break
        self.assertEqual(len(seen) + lost, 500)
        self.assertLess(len(seen), 20)  # two a look, and all of them come in few looks
        self.assertEqual(seen, sorted(seen, key=lambda x: int(x[7:])))
        for most in ("0", "many", "-1", "1.5"):
            self.refused(400, "bad_query", "GET", f"/api/v1/events?most={most}")

    def dropped(self):
        text = request(self.url, "GET", "/metrics")[2]
        return int(
            float(next(x.split()[1] for x in text.splitlines() if x.startswith("kernelmill_events_dropped_total ")))
        )

    def test_metrics_as_prometheus_reads_them(self):
        status, headers, text = request(self.url, "GET", "/metrics")
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        try:
            from prometheus_client.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("python3-prometheus-client is not installed")
        families = {x.name: x for x in text_string_to_metric_families(text)}
        for name in (
            "kernelmill_build_info",
            "kernelmill_episodes",
            "kernelmill_turns",
            "kernelmill_queue_waiting",
            "kernelmill_http_requests",
        ):
            self.assertIn(name, families)
        for family in families.values():
            self.assertTrue(family.name.startswith("kernelmill_"), family.name)
            self.assertTrue(family.documentation, family.name)
            for sample in family.samples:
                self.assertFalse({"run", "episode", "task"} & set(sample.labels), sample)

    def test_health(self):
        self.assertEqual(self.ok("/healthz"), {"status": "ok"})
        self.assertEqual(self.ok("/livez"), {"status": "ok"})
        self.assertEqual(self.ok("/readyz"), {"ready": True})

    # -- locks -----------------------------------------------------------------------------------

    def test_a_foreign_name_that_points_here_reads_and_changes_nothing(self):
        note = {"turn": "g0.e0.t1", "label": "bug"}
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
            self.refused(421, "wrong_host", "GET", "/api/v1/runs", Host=host)
            self.refused(421, "wrong_host", "POST", "/api/v1/runs/first/notes", note, Host=host)

    def test_a_page_of_another_site_changes_nothing(self):
        note = {"turn": "g0.e0.t1", "label": "bug"}
        post = ("POST", "/api/v1/runs/first/notes", note)
        delete = ("DELETE", "/api/v1/runs/first/notes/1")
        for what in (post, delete):
            self.refused(403, "wrong_origin", *what, Origin="http://evil.example")
            self.refused(403, "wrong_origin", *what, Origin="null")
            self.refused(403, "wrong_origin", *what, Sec_Fetch_Site="cross-site")
            self.refused(403, "wrong_origin", *what, Sec_Fetch_Site="same-site")
        self.assertEqual(self.ok("/api/v1/runs/first/notes")["notes"], [])

    def test_every_answer_tells_the_browser_what_it_may_do(self):
        for path in ("/", "/page/app.js", "/api/v1/runs", "/api/v1/runs/none", "/healthz"):
            headers = request(self.url, "GET", path)[1]
            policy = headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'", policy, path)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertNotIn("Access-Control-Allow-Origin", headers)

    def test_large_heads_and_slow_clients(self):
        self.refused(431, "head_too_large", "GET", "/api/v1/runs", X_Padding="x" * 40_000)
        parts = urllib.parse.urlsplit(self.url)
        slow = [socket.create_connection((parts.hostname, parts.port)) for _ in range(50)]
        for s in slow:
            s.sendall(b"GET /api/v1/runs HTTP/1.1\r\nHost: ")  # and no more
        self.ok("/api/v1/runs")  # no request waits for them
        for s in slow:
            s.close()

    def test_notes_are_kept_and_removed(self):
        note = {"turn": "g0.e1.t1", "label": "reward_hack", "quote": "y[r] = 1", "text": "<b>see</b>"}
        status, _, text = request(self.url, "POST", "/api/v1/runs/first/notes", note)
        self.assertEqual(status, 201, text)
        kept = json.loads(text)
        self.assertEqual(self.ok("/api/v1/runs/first/notes")["notes"], [kept])
        for wrong in ({}, {**note, "label": "nice"}, {**note, "turn": "g0"}, {**note, "more": "x"}):
            self.refused(400, "bad_request", "POST", "/api/v1/runs/first/notes", wrong)
        path = f"/api/v1/runs/first/notes/{kept['id']}"
        self.assertEqual(request(self.url, "DELETE", path)[0], 200)
        self.assertEqual(self.ok("/api/v1/runs/first/notes")["notes"], [])
        self.refused(404, "not_found", "DELETE", path)

    def test_runs_are_controlled_only_with_a_token(self):
        self.refused(403, "token_missing", "POST", "/api/v1/runs/first/control", {"verb": "cancel"})

    def test_a_token_is_asked_for_and_tls_beyond_this_machine(self):
        token = pathlib.Path(self.home.name) / "token"
        token.write_text("very-secret-word\n")
        token.chmod(0o600)
        with serving.page(self.root, "--token-file", str(token)) as url:
            self.assertEqual(get(url, "/api/v1/runs")[0], 401)
            self.assertEqual(get(url, "/metrics")[0], 401)
            self.assertEqual(get(url, "/api/v1/runs", Authorization="Bearer wrong")[0], 401)
            self.assertEqual(get(url, "/api/v1/runs", Authorization="Bearer very-secret-word")[0], 200)
            self.assertEqual(request(url, "GET", "/")[0], 200)  # says nothing of any run
            status, document = request(
                url, "POST", "/api/v1/runs/first/control", {"verb": "cancel"}, Authorization="Bearer very-secret-word"
            )[::2]
            self.assertEqual((status, json.loads(document)["error"]["category"]), (409, "not_live"))
        for options, category in (([], "token_missing"), (["--token-file", str(token)], "tls_missing")):
            said = subprocess.run(
                [PROGRAM, "page", str(self.root), "--listen", "0.0.0.0:0", "--json", *options],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual((said.returncode, json.loads(said.stderr)["error"]["category"]), (2, category))

    def test_tls(self):
        import ssl
        import urllib.request

        certificate, key = serving.certificate(self.home.name, "127.0.0.1")
        with serving.page(self.root, "--tls-certificate", certificate, "--tls-key", key) as url:
            self.assertTrue(url.startswith("https://"))
            parts = urllib.parse.urlsplit(url)
            mute = socket.create_connection((parts.hostname, parts.port))  # shakes no hands
            trust = ssl.create_default_context(cafile=certificate)
            with urllib.request.urlopen(url + "/api/v1/runs", context=trust, timeout=300) as answer:
                self.assertEqual(json.load(answer)["runs"][0]["name"], "first")
            mute.close()


class Live(unittest.TestCase):
    """A run that serves its own page."""

    def test_every_turn_is_told_while_the_run_goes_on(self):
        # The policy waits until there is a reader.
        with tempfile.TemporaryDirectory() as home, serving.held_policy([BROKEN, GOOD]) as (policy, release):
            os.environ["XDG_CACHE_HOME"] = home + "/cache"
            arguments = serving.held_arguments(home + "/runs/live", policy, members=3, turns=2)
            with serving.monitored(arguments) as (process, url):
                with stream(url, "/api/v1/events?since=live%3D0") as lines:
                    release(0)
                    told = read_events(lines, 3)
                    self.assertIsNone(process.poll())
                    release(1)
                    told += read_events(lines, 3)
                process.wait()
            self.assertEqual(process.returncode, 0)
            self.assertEqual(
                {(x[2]["episode"], x[2]["turn"]) for x in told}, {(f"g0.e{e}", t) for e in range(3) for t in range(2)}
            )

    def test_a_request_that_follows_an_event_sees_what_it_told(self):
        with tempfile.TemporaryDirectory() as home:
            os.environ["XDG_CACHE_HOME"] = home + "/cache"
            script = serving.write_script(home, [{"text": "No kernel."}], latency_ms=20)
            arguments = serving.run_arguments(home + "/runs/told", script, members=4, turns=8)
            with serving.page(self.folder(home)) as url:
                with stream(url, "/api/v1/events?topics=turns,runs") as file:
                    while not file.readline().startswith(b"retry: "):
                        pass
                    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                        states = self.follow(url, file)
                    self.assertEqual(process.returncode, 0)
            self.assertEqual(states[-1], "finished")

    def folder(self, home):
        os.mkdir(home + "/runs")
        return home + "/runs"

    def follow(self, url, file):
        """The run's states, asked for at each event until it has no worker any longer."""
        turns, states, name = 0, [], ""
        for line in file:
            if line.startswith(b"event: "):
                name = line[7:].strip().decode()
            if not line.startswith(b"data: "):
                continue
            turns += name == "turn"
            if turns == 0:
                continue
            status, run = get(url, "/api/v1/runs/told")
            self.assertEqual(status, 200, run)
            self.assertGreaterEqual(run["turns"], turns)
            listed = get(url, "/api/v1/runs")[1]["runs"][0]
            self.assertGreaterEqual(listed.get("turns", 0), turns, listed)
            states.append(listed["state"])
            if name == "run" and not json.loads(line[6:])["live"]:
                return states
        return states

    def test_a_run_obeys_its_own_page_with_a_token(self):
        with tempfile.TemporaryDirectory() as home, serving.held_policy([BROKEN, GOOD]) as (policy, release):
            os.environ["XDG_CACHE_HOME"] = home + "/cache"
            token = pathlib.Path(home) / "token"
            token.write_text("a-word-that-is-long")
            token.chmod(0o600)
            # One episode at a time, so that a pause is something that shows.
            arguments = serving.held_arguments(
                home + "/runs/obeys",
                policy,
                members=3,
                turns=1,
                more=["episode.max_live=1", "--token-file", str(token)],
            )
            control = "/api/v1/runs/obeys/control"
            with serving.monitored(arguments) as (process, url):

                def ask(verb, **headers):
                    status, _, text = request(url, "POST", control, {"verb": verb}, **headers)
                    return status, json.loads(text)

                def state():
                    runs = get(url, "/api/v1/runs", **mine)[1]["runs"]
                    return runs[0]["state"] if runs else "none"  # it has just begun

                def wait_for(wanted):
                    while state() != wanted:
                        self.assertIsNone(process.poll(), wanted)

                mine = {"Authorization": "Bearer a-word-that-is-long"}
                self.assertEqual(ask("pause")[0], 401)
                self.assertEqual(get(url, "/api/v1/about", **mine)[1]["verbs"], ["pause", "resume", "cancel"])
                self.assertEqual(ask("stop", **mine)[0], 400)
                wait_for("running")
                for verb, becomes in (("pause", "paused"), ("resume", "running"), ("pause", "paused")):
                    self.assertEqual(ask(verb, **mine), (200, {"run": "obeys", "verb": verb}))
                    wait_for(becomes)
                why = get(url, "/api/v1/runs/obeys/explain", **mine)[1]["findings"]
                self.assertIn("It is paused: no new episodes start.", [x["text"] for x in why])
                release(0)  # the first episode ends, and no second one begins
                while get(url, "/api/v1/runs/obeys", **mine)[1]["episodes"]["ended"] < 1:
                    self.assertIsNone(process.poll())
                wait_for("paused")
                self.assertEqual(get(url, "/api/v1/runs/obeys", **mine)[1]["episodes"]["ended"], 1)
                self.assertEqual(ask("cancel", **mine)[0], 200)
                process.wait()
            said = subprocess.run(
                [PROGRAM, "runs", "--root", home + "/runs", "--json"], capture_output=True, check=True
            )
            [run] = json.loads(said.stdout)["runs"]
            self.assertEqual((run["state"], run["ended"]), ("cancelled", 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
