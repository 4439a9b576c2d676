#!/usr/bin/python3
"""The dashboard and the alert rules of launch/tools/monitoring ask for metrics that a real run has."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "page"))
import serving  # noqa: E402

FOLDER = serving.SOURCE / "launch/tools/monitoring"
METRIC = re.compile(r"\bkernelmill_\w+")
PATIENCE = 600
CHEAT = (serving.SOURCE / "tests/exploits/corpus/hacks/input_mutation.cpp").read_text()


def expressions():
    """(where, expression, labels of its legend)."""
    for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"], []
    for panel in json.loads((FOLDER / "grafana.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"], re.findall(r"{{\s*(\w+)\s*}}", target.get("legendFormat", ""))


class Families:
    """What a scrape says: the type of each family, and the labels that its samples have."""

    def __init__(self, text):
        self.types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
        self.labels, self.values = {}, {}
        for name, labels, value in re.findall(r"^(\w+)(?:{(.*)})? (\S+)$", text, re.MULTILINE):
            keys = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))
            self.labels.setdefault(name, set()).update(keys)
            self.values[name, tuple(sorted(keys.items()))] = float(value)

    def knows(self, name):
        return name in self.types or self.types.get(re.sub("_(bucket|sum|count)$", "", name)) == "histogram"

    def value(self, name, **labels):
        return self.values.get((name, tuple(sorted(labels.items()))))


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(home.cleanup)
        with serving.held_policy([CHEAT, serving.GOOD]) as (policy, release):
            arguments = serving.held_arguments(pathlib.Path(home.name) / "runs/watched", policy, 2, 2)
            with serving.monitored(arguments) as (run, url):
                cls.scrape(url)  # a run counts from the first scrape on
                release(0)
                until = time.monotonic() + PATIENCE
                while cls.scrape(url).value("kernelmill_turns_total") != 2:
                    assert run.poll() is None and time.monotonic() < until
                    time.sleep(0.1)
                cls.families = cls.scrape(url)
                release(1)
                run.wait()

    @staticmethod
    def scrape(url):
        status, _, text = serving.request(url, "GET", "/metrics")
        assert status == 200
        return Families(text)

    def test_each_metric_that_is_asked_for_is_there(self):
        asked = 0
        for where, expression, labels in expressions():
            for name in METRIC.findall(expression):
                asked += 1
                self.assertTrue(self.families.knows(name), f"{where}: {name}")
                there = self.families.labels.get(name)
                for label in {*labels, *re.findall(name + r"{(\w+)=", expression)} if there else ():
                    self.assertIn(label, there, f"{where}: {name}")
        self.assertGreater(asked, 15)

    def test_findings_are_counted_by_rule(self):
        self.assertEqual(self.families.value("kernelmill_findings_total", rule="input_overwrite"), 2)

    def test_durations_of_stages_are_a_histogram(self):
        name = "kernelmill_stage_duration_seconds"
        self.assertEqual(self.families.types[name], "histogram")
        for stage in ("policy", "build", "evaluate"):
            counts = [
                (float("inf") if dict(labels)["le"] == "+Inf" else float(dict(labels)["le"]), value)
                for (family, labels), value in self.families.values.items()
                if family == name + "_bucket" and dict(labels)["stage"] == stage
            ]
            self.assertEqual(len(counts), 13)
            in_order = [value for _, value in sorted(counts)]
            self.assertEqual(in_order, sorted(in_order))
            self.assertEqual(in_order[-1], 2)
            self.assertEqual(self.families.value(name + "_count", stage=stage), 2)
            self.assertAlmostEqual(
                self.families.value(name + "_sum", stage=stage),
                self.families.value("kernelmill_stage_seconds_total", stage=stage),
                places=6,
            )
        self.assertIsNone(self.families.value(name + "_count", stage="profile"))

    def test_promtool_takes_the_rules(self):
        promtool = os.environ.get("KERNELMILL_PROMTOOL") or shutil.which("promtool")
        if not promtool:
            self.skipTest("promtool is not installed; Debian's package `prometheus` has it")
        done = subprocess.run(
            [promtool, "check", "rules", str(FOLDER / "alerts.yml")], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
