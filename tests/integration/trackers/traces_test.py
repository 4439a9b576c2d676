#!/usr/bin/python3
"""Traces of real runs as a collector gets them, read by the protocol's own definitions where they can be installed."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import readers  # noqa: E402
from policy import Policy, serving  # noqa: E402
from receiver import Receiver  # noqa: E402

SECRET = "sk-of-the-collector-0815"
NAMES = {
    "traceId",
    "spanId",
    "parentSpanId",
    "name",
    "kind",
    "startTimeUnixNano",
    "endTimeUnixNano",
    "attributes",
    "events",
    "status",
}


def spans_of(requests):
    """The spans of all requests, with their attributes as an object."""
    result = []
    for _, _, body in requests:
        for resource in json.loads(body)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    assert set(span) <= NAMES, span
                    result.append({**span, "attributes": values(span["attributes"])})
    return result


def values(attributes):
    keys = [x["key"] for x in attributes]
    assert len(keys) == len(set(keys)), keys
    return {x["key"]: value(x["value"]) for x in attributes}


def value(x):
    [(kind, inside)] = x.items()
    if kind == "arrayValue":
        return [value(y) for y in inside["values"]]
    return int(inside) if kind == "intValue" else inside


class Traces(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.directory = pathlib.Path(home.name) / "runs" / "told"
        self.environment = {x: y for x, y in os.environ.items() if not x.startswith("OTEL_")}

    def run_with(self, policy, *more, members=2, turns=2, **environment):
        arguments = [
            x for x in serving.run_arguments(self.directory, "", members, turns, more) if "policy.script" not in x
        ]
        # Without timing each turn has a reward, also where the machine has no time to time it.
        arguments += [
            "policy.kind=openai",
            f"policy.base_url={policy.url}",
            "policy.model=asked",
            "policy.sampling.seed=5",
            "evaluation.timing.enabled=false",
        ]
        done = subprocess.run(
            arguments, env={**self.environment, **environment}, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def log(self):
        return (self.directory / "logs/run.log").read_text()

    def test_an_episode_is_one_trace_whose_requests_have_the_ids_that_the_server_was_sent(self):
        with Receiver() as collector, Policy([serving.BROKEN, serving.GOOD]) as policy:
            base = collector.url.removesuffix("/hook")
            self.run_with(
                policy,
                OTEL_EXPORTER_OTLP_ENDPOINT=base,
                OTEL_EXPORTER_OTLP_HEADERS=f"x-key={SECRET},x-other=a%20b",
                OTEL_SERVICE_NAME="kernels",
            )
            requests = collector.wait(lambda xs: sum(x["name"].startswith("invoke_agent") for x in spans_of(xs)) == 2)
        for path, headers, _ in requests:
            self.assertEqual((path, headers["Content-Type"]), ("/v1/traces", "application/json"))
            self.assertEqual((headers["x-key"], headers["x-other"]), (SECRET, "a b"))
        spans = spans_of(requests)
        by_id = {x["spanId"]: x for x in spans}
        self.assertEqual(len(by_id), len(spans))
        roots = [x for x in spans if "parentSpanId" not in x]
        self.assertEqual(len({x["traceId"] for x in roots}), 2)
        self.assertEqual({x["traceId"] for x in spans}, {x["traceId"] for x in roots})
        self.assert_tree(spans, by_id)
        self.assert_ids_of_requests(spans, policy)
        self.assert_conventions(spans)
        text = b"".join(x[2] for x in requests).decode()
        for word in ("nonsense", "<KERNEL>", "solve"):  # of the kernel, which the compiler quotes too
            self.assertTrue(word not in text, word)
        for file in self.directory.rglob("*"):
            if file.is_file():
                self.assertNotIn(SECRET.encode(), file.read_bytes(), file)
        self.assert_is_of_the_protocol(requests, spans)

    def assert_tree(self, spans, by_id):
        for x in spans:
            self.assertLessEqual(int(x["startTimeUnixNano"]), int(x["endTimeUnixNano"]), x)
            if "parentSpanId" not in x:
                self.assertEqual(x["name"], "invoke_agent kernelmill")
                continue
            above = by_id[x["parentSpanId"]]
            self.assertEqual(above["traceId"], x["traceId"])
            self.assertTrue(above["name"].startswith("turn ") or x["name"].startswith("turn "), x["name"])
            slack = 2_000_000_000  # clocks of two kinds, and a busy machine
            self.assertGreaterEqual(int(x["startTimeUnixNano"]), int(above["startTimeUnixNano"]) - slack)
            self.assertLessEqual(int(x["endTimeUnixNano"]), int(above["endTimeUnixNano"]) + slack)
        # Whether a machine can profile is not of interest here.
        names = sorted(x["name"] for x in spans if x["name"] != "execute_tool profile")
        # Of two episodes; the first turn does not compile.
        self.assertEqual(
            names,
            sorted(
                2
                * [
                    "invoke_agent kernelmill",
                    "turn t0",
                    "turn t1",
                    "chat asked",
                    "chat asked",
                    "execute_tool build",
                    "execute_tool build",
                    "execute_tool evaluate",
                ]
            ),
        )

    def assert_ids_of_requests(self, spans, policy):
        sent = sorted(tuple(x["traceparent"].split("-")[1:3]) for _, x in policy.requests)
        self.assertEqual(sent, sorted((x["traceId"], x["spanId"]) for x in spans if x["name"] == "chat asked"))

    def assert_conventions(self, spans):
        def of(name):
            return [x["attributes"] for x in spans if x["name"] == name]

        for x in of("invoke_agent kernelmill"):
            self.assertEqual(x["gen_ai.operation.name"], "invoke_agent")
            self.assertEqual((x["gen_ai.agent.name"], x["gen_ai.provider.name"]), ("kernelmill", "openai"))
            self.assertEqual((x["gen_ai.usage.input_tokens"], x["gen_ai.usage.output_tokens"]), (22, 14))
            self.assertEqual((x["kernelmill.turns"], x["kernelmill.outcome"]), (2, "accepted"))
            self.assertIn(x["gen_ai.conversation.id"], ("told/g0.e0", "told/g0.e1"))
        seeds = set()
        for x in of("chat asked"):
            self.assertEqual(
                (x["gen_ai.operation.name"], x["gen_ai.request.model"], x["gen_ai.response.model"]),
                ("chat", "asked", "answered"),
            )
            self.assertEqual(x["gen_ai.response.finish_reasons"], ["stop"])
            self.assertEqual((x["gen_ai.usage.input_tokens"], x["gen_ai.usage.output_tokens"]), (11, 7))
            self.assertEqual((x["gen_ai.request.temperature"], x["gen_ai.request.stream"]), (1.0, False))
            seeds.add(x["gen_ai.request.seed"])
        self.assertEqual(len(seeds), 4)
        calls = set()
        for x in of("execute_tool build") + of("execute_tool evaluate"):
            self.assertEqual((x["gen_ai.operation.name"], x["gen_ai.tool.type"]), ("execute_tool", "function"))
            calls.add(x["gen_ai.tool.call.id"])
        self.assertEqual(len(calls), 6)
        self.assertEqual(
            sorted(x["kernelmill.build.compiled"] for x in of("execute_tool build")), [False, False, True, True]
        )
        self.assertEqual(
            [x.get("error.type") for x in of("execute_tool build") if not x["kernelmill.build.compiled"]],
            2 * ["compile_error"],
        )
        self.assertTrue(all(x["kernelmill.evaluation.correct"] for x in of("execute_tool evaluate")))
        for span in spans:
            if span["name"] == "turn t1":
                verdicts = [values(x["attributes"]) for x in span["events"] if x["name"] == "gen_ai.evaluation.result"]
                scores = {x["gen_ai.evaluation.name"]: x for x in verdicts}
                self.assertEqual(
                    scores["reward"]["gen_ai.evaluation.score.value"], span["attributes"]["kernelmill.reward"]
                )
                self.assertEqual(scores["gate.correctness"]["gen_ai.evaluation.score.label"], "pass")

    def assert_is_of_the_protocol(self, requests, spans):
        python, why = readers.python()
        if python is None:
            self.skipTest(why)
        bodies = [json.loads(x[2]) for x in requests]
        read = readers.read_with(readers.OTLP, given=json.dumps(bodies))
        self.assertEqual([x["name"] for x in read], [x["name"] for x in spans])
        for mine, theirs in zip(spans, read):
            self.assertEqual(
                (theirs["trace"], theirs["id"], theirs["parent"]),
                (mine["traceId"], mine["spanId"], mine.get("parentSpanId", "")),
            )
            self.assertEqual(
                (theirs["start"], theirs["end"]), (int(mine["startTimeUnixNano"]), int(mine["endTimeUnixNano"]))
            )
            self.assertEqual(
                theirs["attributes"], {x: y for x, y in mine["attributes"].items() if not isinstance(y, list)}
            )
            self.assertEqual(theirs["events"], [x["name"] for x in mine.get("events", [])])
            self.assertEqual(theirs["kind"], mine["kind"])
            self.assertEqual(theirs["service"]["service.name"], "kernels")

    def test_texts_are_sent_to_a_collector_that_asks_for_them(self):
        with Receiver() as collector, Policy([serving.GOOD]) as policy:
            self.run_with(policy, f"otlp.endpoint={collector.url}", "otlp.content=true", members=1, turns=1)
            spans = spans_of(collector.wait(lambda xs: any("parentSpanId" not in x for x in spans_of(xs))))
        [chat] = [x["attributes"] for x in spans if x["name"] == "chat asked"]
        [said] = json.loads(chat["gen_ai.output.messages"])
        self.assertEqual(said["role"], "assistant")
        self.assertEqual(said["parts"][0]["content"], serving.completion(serving.GOOD))
        self.assertEqual([x["role"] for x in json.loads(chat["gen_ai.input.messages"])], ["system", "user"])
        [build] = [x["attributes"] for x in spans if x["name"] == "execute_tool build"]
        self.assertIn('extern "C" void solve', build["gen_ai.tool.call.arguments"])

    def test_a_collector_that_is_silent_refuses_or_is_gone_costs_the_run_nothing(self):
        with Policy([serving.GOOD]) as policy:
            # A collector has the time to answer on a busy machine, too.
            for name, answer, says, patience in (
                ("silent", lambda _: None, "timeout", 300),
                ("gone", None, "refused", 5000),
                ("refusing", lambda _: 400, "status 400", 60000),
                ("busy", lambda _: 503, "status 503", 5000),
            ):
                with self.subTest(name), Receiver(answer or (lambda _: 200)) as collector:
                    self.directory = self.directory.with_name(name)
                    url = collector.url if answer else "http://127.0.0.1:9/"  # no program listens there
                    self.run_with(policy, f"otlp.endpoint={url}", f"otlp.timeout_ms={patience}", members=2, turns=1)
                    self.assertIn("failed to send traces to the collector: ", self.log())
                    self.assertIn(says, self.log())
                    self.assertRegex(self.log(), r"sent 0 spans; \d+ spans were not taken")
                    self.assertNotIn(url, self.log())

    def test_a_collector_that_is_busy_for_a_moment_gets_the_same_again(self):
        with Receiver(lambda number: 503 if number == 1 else 200) as collector, Policy([serving.GOOD]) as policy:
            self.run_with(policy, f"otlp.endpoint={collector.url}", "otlp.timeout_ms=60000", members=1, turns=1)
            first, second = collector.wait(lambda xs: len(xs) >= 2)[:2]
        self.assertEqual(first[2], second[2])

    def test_nothing_is_sent_for_the_episodes_outside_of_the_share(self):
        with Receiver() as collector, Policy([serving.GOOD]) as policy:
            self.run_with(policy, f"otlp.endpoint={collector.url}", "otlp.share=0.25", members=12, turns=1)
            requests = list(collector.requests)
        roots = [x for x in spans_of(requests) if "parentSpanId" not in x]
        self.assertLess(len(roots), 12)
        self.assertEqual({x["traceId"] for x in spans_of(requests)}, {x["traceId"] for x in roots})


if __name__ == "__main__":
    unittest.main(verbosity=2)
