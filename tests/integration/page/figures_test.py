#!/usr/bin/python3
"""One run, asked everywhere: the page, the commands and the client say each figure by the name that
docs/reference/glossary.md defines, with the value that the turns' rows give."""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import serving  # noqa: E402
from serving import BROKEN, GOOD, PROGRAM, SOURCE, get  # noqa: E402

sys.path.insert(0, str(SOURCE / "launch/learning/client"))
import kernelmill  # noqa: E402

FIELDS = "group,member,turn,accepted,speedup,speedup.low,evidence,quality,reward,open"


def figures_of_the_glossary():
    text = (SOURCE / "docs/reference/glossary.md").read_text()
    section = text.split("## Figures")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def keys_of(document):
    if isinstance(document, dict):
        for key, value in document.items():
            yield key
            yield from keys_of(value)
    elif isinstance(document, list):
        for value in document:
            yield from keys_of(value)


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        os.environ["XDG_CACHE_HOME"] = cls.home.name + "/cache"
        cls.root = pathlib.Path(cls.home.name) / "runs"
        cls.root.mkdir()
        script = serving.write_script(cls.home.name, serving.replies(GOOD, BROKEN, GOOD.replace("double", "float")))
        subprocess.run(serving.run_arguments(cls.root / "first", script, 3, 3), check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    def said(self, *words):
        done = subprocess.run(
            [PROGRAM, *words, "--json", "--root", str(self.root)], check=True, capture_output=True, text=True
        )
        return done.stdout

    def figures(self):
        """From the turns alone: (best lower bound, geometric mean, evidence, near misses)."""
        rows = [json.loads(x) for x in self.said("query", "", "first", "--fields", FIELDS).splitlines()]
        best = {}
        for x in rows:
            if x["accepted"] and x["speedup"] is not None:
                key = x["group"], x["member"]
                best[key] = max(best.get(key, (0, 0)), (x["speedup.low"], x["speedup"]))
        asked = [x["evidence"] for x in rows if not x["open"]]
        return (
            max((low for low, _ in best.values()), default=None),
            math.exp(sum(math.log(x) for _, x in best.values()) / len(best)) if best else None,
            sum(asked) / len(asked),
            sum(x["quality"] == "near_miss" for x in rows),
        )

    def test_every_place_says_the_same_by_the_same_name(self):
        lower, geomean, evidence, near = self.figures()
        show = json.loads(self.said("show", "first"))
        documents = {
            "runs": json.loads(self.said("runs"))["runs"][0],
            "show": show,
            "stats": json.loads(self.said("stats", "first")),
            "report": json.loads(self.said("report", "first"))["all"],
        }
        compare = json.loads(self.said("compare", "first", "first"))
        (client,) = kernelmill.runs(str(self.root), program=PROGRAM)
        documents["client"] = vars(client)
        with serving.page(self.root) as url:

            def page(path):
                status, document = get(url, "/api/v1/" + path)
                self.assertEqual(status, 200, document)
                return document

            documents["page: runs"] = page("runs")["runs"][0]
            documents["page: run"] = page("runs/first")
            rows = page("runs/first/episodes")["episodes"]
            [group] = page("runs/first/groups")["groups"]
            episode = page("runs/first/episodes/g0.e0")
            per_position = page("runs/first/positions")

        for where, x in documents.items():
            for name, value in {
                "best_speedup_lower": lower,
                "geomean_speedup": geomean,
                "evidence": evidence,
                "near_misses": near,
            }.items():
                if where == "report" and name in ("evidence", "near_misses"):
                    continue  # the benchmark knows neither
                with self.subTest(where=where, name=name):
                    self.assertAlmostEqual(x[name], value, 12) if value is not None else self.assertIsNone(x[name])

        bests = {x["id"]: (x["best_speedup"] or {}).get("low") for x in show["episodes"]}
        self.assertEqual({x["id"]: x["best_speedup_lower"] for x in rows}, bests)
        self.assertEqual({x["id"]: x["best_speedup_lower"] for x in group["episodes"]}, bests)
        self.assertEqual(group["best_speedup_lower"], lower)
        self.assertEqual(episode["end"]["best_speedup_lower"], bests["g0.e0"])
        self.assertEqual((compare["by_task"][0]["a"]["best_speedup"] or {}).get("low"), lower)
        figure = compare["statistics"][-1]
        self.assertEqual(figure["metric"], "task_geomean_speedup")
        if geomean is not None:  # of one task
            self.assertAlmostEqual(figure["a"], geomean, 12)

        names = figures_of_the_glossary()
        self.assertIn("geomean_speedup", names)
        everything = [*documents.values(), compare, rows, group, episode, per_position]
        said = {x for x in keys_of(everything) if "speedup" in x} | {x["metric"] for x in compare["statistics"][-1:]}
        said = {x.removesuffix("_samples") for x in said} - {"speedup"}
        self.assertLessEqual(said, names, "the glossary does not define these")


if __name__ == "__main__":
    unittest.main(verbosity=2)
