#!/usr/bin/python3
"""`kernelmill serve` on the CPU, asked by the Python client and by bare sockets."""

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import unittest
import urllib.parse

import kernels  # noqa: F401 - puts the client on the path

# isort: split
import kernelmill
from kernels import BROKEN, GOOD, PROGRAM, SOURCE, TASK, TASKS, WRONG

PATIENCE = 600  # seconds: other work may have the machine
# Half a second of a processor for each of 39 calls: one without end would be gone after two.
LONG = """#include <ctime>
static double worked() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
""" + GOOD.replace("{\n", "{\n  for (double until = worked() + 0.5; worked() < until;) {}\n", 1)

OPENAPI = json.loads((SOURCE / "docs" / "reference" / "openapi.json").read_text())


@contextlib.contextmanager
def server(*options):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:  # a compiler may write to its end
        os.environ["XDG_CACHE_HOME"] = home
        with kernelmill.serve(
            "cpu", program=PROGRAM, tasks=str(TASKS), patience=0, options=["--no-timing", *options]
        ) as client:
            client.timeout = PATIENCE
            yield client


def ask(client, method, path, body=None, **headers):
    """(status, document): what the client makes errors of, as it is."""
    headers = {k.replace("_", "-"): v for k, v in headers.items()}
    status, _, document = client._once(method, path, body, headers, PATIENCE)
    return status, document


def schema_of(name):
    return OPENAPI["components"]["schemas"][name]


def hold(test, document, name):
    """Holds a document against a schema of openapi.json: each field, and no other."""
    schema = schema_of(name)
    test.assertEqual(set(document) - set(schema["properties"]), set(), name)
    test.assertEqual(set(schema.get("required", [])) - set(document), set(), name)
    kinds = {"string": str, "boolean": bool, "number": (int, float), "integer": int, "array": list, "object": dict}
    for key, value in document.items():
        field = schema["properties"][key]
        if value is None:
            test.assertTrue(field.get("nullable"), f"{name}.{key} is null")
            continue
        inner = field.get("allOf", [{}])[0].get("$ref") or field.get("items", {}).get("$ref")
        if "type" in field:
            test.assertIsInstance(value, kinds[field["type"]], f"{name}.{key}")
        if "enum" in field:
            test.assertIn(value, field["enum"], f"{name}.{key}")
        for one in value if isinstance(value, list) else [value]:
            if inner:
                hold(test, one, inner.rsplit("/", 1)[1])


class Serve(unittest.TestCase):
    """One server for what does not fill it."""

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.client = cls.stack.enter_context(server())

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def test_a_good_a_wrong_and_a_broken_candidate(self):
        names = ["good", "wrong", "broken", "empty"]
        sources = [GOOD, WRONG, BROKEN, " "]
        all_ = self.client.evaluate_many(kernelmill.Candidate(TASK, source=s, name=n) for s, n in zip(sources, names))
        self.assertEqual([x.document["name"] for x in all_], names)
        self.assertEqual([x.state for x in all_], ["done"] * 4)
        self.assertEqual([x.outcome for x in all_], ["accepted"] + ["rejected"] * 3)
        self.assertEqual([x.correct for x in all_], [True, False, False, False])
        self.assertGreater(all_[0].reward, 0)
        self.assertEqual(all_[2].verdict["category"], "compile_error")
        self.assertFalse(all_[3].verdict["format_ok"])
        self.assertIn("nonsense", all_[2].feedback)
        for x in all_:
            hold(self, x.document, "Evaluation")

    def test_the_verdict_is_that_of_eval(self):
        with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
            file.write(WRONG)
            file.flush()
            said = subprocess.run(
                [
                    PROGRAM,
                    "eval",
                    "--task",
                    TASK,
                    "--root",
                    str(TASKS),
                    "--backend",
                    "cpu",
                    "--no-timing",
                    "--json",
                    file.name,
                ],
                capture_output=True,
                check=True,
            )
        own = json.loads(said.stdout)
        served = self.client.evaluate(TASK, WRONG).verdict
        self.assertEqual(set(own) - {"schema_version", "sandbox"}, set(served))
        for key in ("candidate_sha256", "outcome", "category", "reward", "contract"):
            self.assertEqual(own[key], served[key], key)
        # Reasons quote numbers of contents that are drawn each time.
        self.assertEqual(
            [(x["name"], x["status"]) for x in own["gates"]], [(x["name"], x["status"]) for x in served["gates"]]
        )

    def test_one_candidate_that_is_waited_for(self):
        status, one = ask(self.client, "POST", "/v1/evaluate", {"task": TASK, "source": GOOD, "wait": True})
        self.assertEqual((status, one["state"]), (200, "done"))
        status, all_ = ask(
            self.client, "POST", "/v1/evaluate", {"candidates": [{"task": TASK, "source": GOOD}], "wait": True}
        )
        hold(self, all_, "Evaluations")

    def test_a_completion_is_read_as_in_an_episode(self):
        text = f"<think>sum</think>\n<KERNEL>\n```cpp\n{GOOD}```\n</KERNEL>"
        self.assertEqual(self.client.evaluate(TASK, completion=text).outcome, "accepted")
        self.assertFalse(self.client.evaluate(TASK, completion="no").verdict["format_ok"])

    def test_an_earlier_answer_is_taken_only_where_it_may_be(self):
        source = GOOD + "// cache\n"
        first = self.client.evaluate(TASK, source, cache=True)
        again = self.client.evaluate(TASK, source, cache=True)
        fresh = self.client.evaluate(TASK, source)
        other = self.client.evaluate(TASK, source + "\n", cache=True)
        self.assertEqual([x.document["from_cache"] for x in (first, again, fresh, other)], [False, True, False, False])
        self.assertEqual(first.verdict, again.verdict)
        self.assertNotEqual(first.id, again.id)

    def test_what_is_wrong_is_named(self):
        def refused(body, status=400):
            got, document = ask(self.client, "POST", "/v1/evaluate", body)
            self.assertEqual(got, status, document)
            hold(self, document, "Error")
            return document["error"]["message"]

        one = {"task": TASK, "source": GOOD}
        self.assertIn('unknown field "sauce"', refused({**one, "sauce": 1}))
        self.assertIn("did you mean 'source'", refused({"task": TASK, "source1": GOOD}))
        self.assertIn('"candidates[1].source"', refused({"candidates": [one, {"task": TASK, "source": 1}]}))
        self.assertIn('"task" is missing', refused({"source": GOOD}))
        self.assertIn("exactly one", refused({"task": TASK}))
        self.assertIn('"cache" must be one of', refused({**one, "cache": "yes"}))
        self.assertIn('"task": there is no task "native/row_sun"', refused({**one, "task": "native/row_sun"}))
        self.assertIn("must be an object", refused([one]))
        status, document = ask(self.client, "GET", "/v1/tasks?page=1")
        self.assertEqual(status, 400)
        self.assertIn('"page"', document["error"]["message"])
        status, document = ask(self.client, "GET", "/v1/evaluations/x?wait_s=soon")
        self.assertEqual(status, 400)
        self.assertIn("wait_s", document["error"]["message"])
        with self.assertRaises(kernelmill.NotFound):
            self.client.get("ev-none")

    def test_the_same_request_again_is_the_same_evaluations(self):
        body = {"candidates": [{"task": TASK, "source": GOOD}], "wait": False}
        status, first = ask(self.client, "POST", "/v1/evaluate", body, Idempotency_Key="k1")
        self.assertEqual(status, 202)
        _, again = ask(self.client, "POST", "/v1/evaluate", body, Idempotency_Key="k1")
        self.assertEqual([x["id"] for x in first["evaluations"]], [x["id"] for x in again["evaluations"]])
        _, other = ask(self.client, "POST", "/v1/evaluate", body, Idempotency_Key="k2")
        self.assertNotEqual(first["evaluations"][0]["id"], other["evaluations"][0]["id"])
        status, document = ask(self.client, "POST", "/v1/evaluate", {**body, "wait": True}, Idempotency_Key="k1")
        self.assertEqual((status, document["error"]["category"]), (409, "idempotency_conflict"))

    def test_without_the_token_there_is_nothing(self):
        for token in (None, "wrong"):
            stranger = kernelmill.Client(self.client.url, token, patience=0)
            with self.assertRaises(kernelmill.Unauthorized):
                stranger.tasks()
            self.assertEqual(ask(stranger, "POST", "/evaluate", {})[0], 401)
            self.assertTrue(stranger.ready())

    def test_large_and_half_requests(self):
        with self.assertRaises(kernelmill.RequestError) as caught:
            self.client.evaluate(TASK, "x" * (9 << 20))
        self.assertEqual(caught.exception.status, 413)
        with connected(self.client) as link:
            link.sendall(b"POST /v1/evaluate HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
            self.assertTrue(self.client.ready())

    def test_a_page_of_another_site_cannot_post(self):
        status, document = ask(self.client, "POST", "/v1/evaluate", {}, Origin="http://evil.example")
        self.assertEqual((status, document["error"]["category"]), (403, "wrong_origin"))

    def test_every_operation_of_the_document_answers_as_it_says(self):
        """Each path with its method is there, and nothing else; answers have the named fields."""
        done = self.client.evaluate(TASK, GOOD)
        ids = {
            "/v1/evaluations/{id}": done.id,
            "/status/{id}": "gym",
            "/results/{id}": "gym",
            "/workflow/results/{id}": "gym",
            "/tasks/{id}": "gym",
            "/v1/rollouts/{id}": "none",
            "/v1/seats/{id}": "none",
            "/v1/seats/{id}/trace": "none",
        }
        gym = {"task_id": "gym", "reference_code": reference_code(), "kernel_code": GOOD}
        bodies = {
            "/v1/evaluate": {"candidates": [{"task": TASK, "source": GOOD}]},
            "/evaluate": gym,
            "/evaluate/batch": {"tasks": [gym]},
            "/workflow/submit": {"payload": gym},
        }
        order = sorted(OPENAPI["paths"].items(), key=lambda x: "{id}" in x[0])
        for path, methods in order:
            for method, said in methods.items():
                real = path.replace("{id}", ids.get(path, ""))
                status, document = ask(self.client, method.upper(), real, bodies.get(path))
                self.assertIn(str(status), said["responses"], f"{method} {path}: {document}")
                content = said["responses"][str(status)]["content"]["application/json"]["schema"]
                if path == "/v1/evaluate":
                    content = content["oneOf"][1]
                many = content.get("type") == "array"
                name = (content["items"] if many else content)["$ref"].rsplit("/", 1)[1]
                for one in document if many else [document]:
                    hold(self, one, name)
            if "requestBody" in methods.get("post", {}):
                status, document = ask(self.client, "POST", real)
                self.assertEqual(status, 415, path)
                self.assertIn("415", methods["post"]["responses"], path)
                hold(self, document, "Error")
            status, _ = ask(self.client, "PUT", real, {})
            self.assertEqual(status, 405, path)

    def test_the_document_in_the_repository_is_that_of_the_program(self):
        said = subprocess.run([PROGRAM, "__reference", "openapi"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(
            said,
            (SOURCE / "docs" / "reference" / "openapi.json").read_text(),
            "run: build/bin/kernelmill __reference openapi > docs/reference/openapi.json",
        )

    def gym(self, source, **more):
        """A task as KernelGYM's client sends it, with what it sends and nothing here reads."""
        return {
            "task_id": "t 1",
            "reference_code": reference_code() + "\n\n",
            "kernel_code": source,
            "backend": "triton",
            "num_correct_trials": 5,
            "timeout": 300,
            "priority": "normal",
            "is_valid": None,
            "verbose_errors": True,
            "detect_decoy_kernel": True,
            "reference_backend": None,
            "of_another_version": [1],
            **more,
        }

    def test_kernelgym_clients_find_what_they_know(self):
        status, result = ask(self.client, "POST", "/evaluate", self.gym(GOOD))
        self.assertEqual((status, result["task_id"], result["status"]), (200, "t 1", "completed"))
        hold(self, result, "KernelGymResult")
        self.assertTrue(result["compiled"] and result["correctness"])
        self.assertIn("num_correct_trials", result["metadata"]["not_used"])
        path = urllib.parse.quote("t 1")
        self.assertEqual(ask(self.client, "GET", "/status/" + path)[1]["status"], "completed")
        self.assertEqual(ask(self.client, "GET", "/results/" + path)[1], result)
        self.assertEqual(ask(self.client, "GET", "/workflow/results/" + path)[1]["result"]["compiled"], True)
        status, document = ask(self.client, "POST", "/evaluate", self.gym(GOOD, reference_code="print(1)"))
        self.assertEqual(status, 400)
        self.assertIn("reference_code", document["error"]["message"])

    def test_kernelgym_has_its_error_codes_and_how_much_is_the_candidates_own(self):
        tasks = [self.gym(x, task_id=str(i)) for i, x in enumerate((GOOD, WRONG, BROKEN, " "))]
        status, batch = ask(self.client, "POST", "/evaluate/batch", {"batch_id": "b", "tasks": tasks})
        hold(self, batch, "KernelGymBatchResult")
        self.assertEqual((status, batch["batch_id"], batch["completed_tasks"], batch["failed_tasks"]), (200, "b", 4, 0))
        self.assertEqual(
            [x["error_code"] for x in batch["results"]],
            [None, "CORRECTNESS_ERROR", "COMPILATION_ERROR", "VALIDATION_ERROR"],
        )
        own = [x["metadata"]["custom_kernel_cuda_time_coverage"] for x in batch["results"]]
        self.assertEqual(own, [1.0, 1.0, None, None])
        self.assertEqual(batch["results"][0]["metadata"]["num_custom_kernels"], 1)

    def test_kernelgym_workflows_and_counters(self):
        payload = self.gym(GOOD)
        status, document = ask(
            self.client,
            "POST",
            "/workflow/submit",
            {"workflow": "kernelbench", "task_id": "w", "payload": payload, "force_refresh": False},
        )
        self.assertEqual((status, document["task_id"], document["status"]), (200, "w", "completed"))
        hold(self, document, "KernelGymWorkflowResult")
        self.assertTrue(document["result"]["correctness"])
        status, _ = ask(self.client, "POST", "/workflow/submit", {"workflow": "kernel_simple", "payload": payload})
        self.assertEqual(status, 400)
        _, metrics = ask(self.client, "GET", "/metrics")
        self.assertGreater(metrics["queue_metrics"]["completed_tasks"], 0)
        _, health = ask(self.client, "GET", "/health")
        self.assertEqual((health["status"], health["total_processed"] > 0), ("healthy", True))
        self.assertEqual(ask(self.client, "GET", "/queue/status")[1]["pending"], 0)


class Tls(unittest.TestCase):
    def test_https_with_a_certificate(self):
        with tempfile.TemporaryDirectory() as home:
            os.environ["XDG_CACHE_HOME"] = home
            key, certificate = home + "/key.pem", home + "/cert.pem"
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
                    certificate,
                    "-days",
                    "2",
                    "-subj",
                    "/CN=127.0.0.1",
                    "-addext",
                    "subjectAltName=IP:127.0.0.1",
                ],
                check=True,
                capture_output=True,
            )
            with kernelmill.serve(
                "cpu",
                program=PROGRAM,
                tasks=str(TASKS),
                patience=0,
                options=["--no-timing", "--tls-certificate", certificate, "--tls-key", key],
            ) as client:
                self.assertTrue(client.url.startswith("https://"))
                with self.assertRaises(kernelmill.Unavailable):
                    client.tasks()  # no authority that this machine trusts has signed it
                knows = kernelmill.Client(client.url, client._token, ca_file=certificate)
                self.assertIn(TASK, [x.id for x in knows.tasks()])
            os.chmod(key, 0o644)
            told = subprocess.run(
                [PROGRAM, "serve", "--backend", "cpu", "--tls-certificate", certificate, "--tls-key", key],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertIn("every user of this machine may read it", told.stderr)
            half = subprocess.run(
                [PROGRAM, "serve", "--backend", "cpu", "--tls-key", key], capture_output=True, text=True
            )
            self.assertIn("give both --tls-certificate and --tls-key", half.stderr)


class FullServer(unittest.TestCase):
    """Servers whose slots are held by candidates that take long."""

    def fill(self, client):
        """Fills the slots, and has one more wait; returns that one."""
        while True:
            one = client.submit([kernelmill.Candidate(TASK, source=LONG)])[0]
            if client.get(one.id).state == "waiting":
                return one

    def waiting(self, client):
        return ask(client, "GET", "/readyz")[1]["waiting"]

    def test_a_full_queue_says_when_to_come_again(self):
        with server("--queue", "1") as client:
            waits = self.fill(client)
            self.assertEqual(client.get(waits.id).document["position"], 0)
            self.assertIsNone(client.get(waits.id).document["expected_wait_s"])  # none has ended yet
            self.assertEqual(client.get(waits.id, wait_s=0.01).state, "waiting")
            status, after, document = client._once("POST", "/v1/evaluate", {"task": TASK, "source": GOOD}, {}, 0)
            self.assertEqual((status, document["error"]["category"]), (429, "queue_full"))
            self.assertGreater(after, 0)
            self.assertEqual(ask(client, "GET", "/readyz")[0], 503)
            self.assertEqual(client.cancel(waits.id).state, "cancelled")
            self.assertEqual(client.wait(waits.id).state, "cancelled")
            self.assertEqual(ask(client, "GET", "/readyz")[0], 200)
            with self.assertRaises(TimeoutError):
                self.fill_and_wait(client)

    def test_a_wait_is_estimated_once_one_has_ended(self):
        with server() as client:
            client.evaluate(TASK, GOOD)
            self.assertGreater(client.get(self.fill(client).id).document["expected_wait_s"], 0)

    def fill_and_wait(self, client):
        client.wait(self.fill(client).id, timeout=0.01)

    def test_a_client_that_leaves_takes_along_what_waits_for_it(self):
        with server() as client:
            self.fill(client)
            before = self.waiting(client)
            with connected(client) as link:
                link.sendall(post(client, {"task": TASK, "source": GOOD, "wait": True}))
                while self.waiting(client) == before:
                    pass
            while self.waiting(client) > before:
                pass
            with connected(client) as link:
                link.sendall(post(client, {"task": TASK, "source": GOOD, "wait": True, "on_disconnect": "continue"}))
                while self.waiting(client) == before:
                    pass
            marker = client.submit([kernelmill.Candidate(TASK, source=GOOD)])[0]
            self.assertEqual(client.get(marker.id).document["position"], before + 1)

    def test_an_interrupted_client_leaves_no_orphans(self):
        with server() as client:
            self.fill(client)
            before = self.waiting(client)
            real, client.wait = client.wait, None  # not callable: raises where it would wait
            with self.assertRaises(TypeError):
                client.evaluate_many([kernelmill.Candidate(TASK, source=GOOD)] * 3)
            client.wait = real
            self.assertEqual(self.waiting(client), before)

    def test_it_ends_while_candidates_run(self):
        with server() as client:
            self.fill(client)
        self.assertFalse(client.ready())


@contextlib.contextmanager
def clients(**rules):
    """A server with clients of these names and rules; each as a Client."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        os.environ["XDG_CACHE_HOME"] = home
        tokens = {name: f"the-token-of-{name}-alone" for name in rules}
        with open(os.open(home + "/clients", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            json.dump({"clients": [{"name": x, "token": tokens[x], **rules[x]} for x in rules]}, file)
        with kernelmill.serve(
            "cpu",
            program=PROGRAM,
            tasks=str(TASKS),
            patience=0,
            with_token=False,
            options=["--no-timing", "--clients", home + "/clients"],
        ) as one:
            yield {x: kernelmill.Client(one.url, token, patience=0, timeout=PATIENCE) for x, token in tokens.items()}


class Quotas(unittest.TestCase):
    """Clients with a token each."""

    fill = FullServer.fill

    def test_requests_a_minute(self):
        with clients(a={"per_minute": 3}, b={}) as who:
            for _ in range(3):
                who["a"].tasks()
            status = 200
            while status == 200:  # where three took long, there is room for another
                status, after, document = who["a"]._once("GET", "/v1/tasks", None, {}, 0)
            self.assertEqual((status, document["error"]["category"]), (429, "quota"))
            self.assertIn("a may send 3 requests a minute", document["error"]["message"])
            self.assertTrue(1 <= after <= 20, after)
            for _ in range(5):
                who["b"].tasks()
            self.assertTrue(who["a"].ready(), "without a token, and not counted")
            with self.assertRaises(kernelmill.Unauthorized):
                kernelmill.Client(who["a"].url, "the-token-of-no-client", patience=0).tasks()

    def test_requests_in_flight(self):
        with clients(a={"in_flight": 1}, b={}) as who:
            self.fill(who["b"])
            with connected(who["a"]) as link:
                link.sendall(post(who["a"], {"task": TASK, "source": GOOD, "wait": True}))
                with self.assertRaisesRegex(kernelmill.Busy, "a has 1 requests in flight"):
                    while True:
                        who["a"].tasks()
                who["b"].tasks()
            while True:  # it has left
                with contextlib.suppress(kernelmill.Busy):
                    who["a"].tasks()
                    break

    def test_evaluations_that_wait_or_run(self):
        with clients(a={"evaluations": 3}, b={}) as who:
            self.fill(who["b"])
            mine = who["a"].submit([kernelmill.Candidate(TASK, source=GOOD)] * 3)
            with self.assertRaisesRegex(kernelmill.Busy, "a has 3 evaluations that wait or run, of at most 3"):
                who["a"].submit([kernelmill.Candidate(TASK, source=GOOD)])
            who["b"].submit([kernelmill.Candidate(TASK, source=GOOD)])
            who["a"].cancel(mine[0].id)
            who["a"].submit([kernelmill.Candidate(TASK, source=GOOD)])

    def test_a_client_that_comes_late_waits_for_no_other_clients_queue(self):
        with clients(a={}, b={}, c={"share": 2}) as who:
            self.fill(who["b"])
            many = who["a"].submit([kernelmill.Candidate(TASK, source=GOOD)] * 20)
            [late] = who["c"].submit([kernelmill.Candidate(TASK, source=GOOD)])
            self.assertGreaterEqual(many[-1].document["position"], 19)
            self.assertLessEqual(late.document["position"], 2)

    def test_each_finds_its_own_evaluations_alone(self):
        with clients(a={}, b={}) as who:
            mine = who["a"].submit([kernelmill.Candidate(TASK, source=GOOD)])[0].id
            for method in ("GET", "DELETE"):
                status, document = ask(who["b"], method, "/v1/evaluations/" + mine)
                self.assertEqual((status, document["error"]["category"]), (404, "not_found"))
            self.assertNotEqual(ask(who["a"], "GET", "/v1/evaluations/" + mine)[1]["state"], "cancelled")

    def test_a_task_of_the_same_name_is_another_clients_own(self):
        with clients(a={}, b={}) as who:
            task = {"task_id": "t", "reference_code": reference_code(), "entry_point": "solve"}
            for name, source, right in (("a", GOOD, True), ("b", WRONG, False)):
                status, document = ask(who[name], "POST", "/evaluate", {**task, "kernel_code": source})
                self.assertEqual((status, document["correctness"]), (200, right))
            self.assertTrue(ask(who["a"], "GET", "/results/t")[1]["correctness"])
            self.assertFalse(ask(who["b"], "GET", "/results/t")[1]["correctness"])

    def test_the_same_idempotency_key_of_two_clients_is_two(self):
        with clients(a={}, b={}) as who:
            ids = {
                ask(x, "POST", "/v1/evaluate", {"task": TASK, "source": GOOD}, Idempotency_Key="k")[1]["id"]
                for x in who.values()
            }
            self.assertEqual(len(ids), 2)


class Starting(unittest.TestCase):
    def refused(self, *options):
        said = subprocess.run(
            [PROGRAM, "serve", "--root", str(TASKS), "--json", *options], capture_output=True, text=True
        )
        self.assertNotEqual(said.returncode, 0)
        self.assertEqual(said.stdout, "")
        return json.loads(said.stderr)["error"]["category"]

    def test_it_says_why_it_does_not_start(self):
        self.assertEqual(self.refused("--listen", "0.0.0.0:0", "--backend", "cpu"), "token_missing")
        self.assertEqual(self.refused("--token-file", "/nowhere"), "token_missing")
        self.assertEqual(self.refused("--clients", "/nowhere"), "token_missing")
        self.assertEqual(self.refused("--clients", "/nowhere", "--token-file", "/nowhere"), "token_missing")
        self.assertEqual(self.refused("--listen", "127.0.0.1:x"), "usage")
        self.assertEqual(self.refused("--queue", "0"), "usage")


def reference_code():
    return (TASKS / TASK / "reference.cpp").read_text()


@contextlib.contextmanager
def connected(client):
    parts = urllib.parse.urlsplit(client.url)
    link = socket.create_connection((parts.hostname, parts.port))
    try:
        yield link
    finally:
        link.close()


def post(client, body):
    text = json.dumps(body).encode()
    return (
        f"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
        f"{client._token}\r\nContent-Type: application/json\r\nContent-Length: "
        f"{len(text)}\r\n\r\n"
    ).encode() + text


if __name__ == "__main__":
    unittest.main()
