import ast
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from gpu_check import common, matrix
from gpu_check.__main__ import PARTS, USUALLY, usual_seconds
from gpu_check.false_alarms import rounds
from gpu_check.matrix import (
    START_SECONDS,
    VARIANTS,
    commands,
    digest_of,
    holds_today,
    repeats,
    result_of,
    rows_of_other_runs,
    share_of,
    table,
    variants,
)

SOURCES = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCES / "launch/tools/packaging"))
import same_torch  # noqa: E402

ALL = ["native", "device", "torch", "torch_language"]


def essence(x):
    """What a variant does: its source without comments, the marks of what it prints, and its problem."""
    text = x["source"] + (x.get("companion") or "")
    if x["suffix"] == ".py":
        text = ast.dump(ast.parse(text))
    else:
        text = re.sub(r"//(?! launch: ).*|/\*.*?\*/|\s", "", text)
    for mark in x.get("marks", []):
        text = text.replace(mark, "")
    return text, str(x["task"]), x.get("preset"), x.get("clock")


def verdict(outcome, low=None, **more):
    timing = {"measured": low is not None, "speedup": {"low": low}}
    return {"outcome": outcome, "timing": timing, **more}


class Results(unittest.TestCase):
    def test_refused_is_caught_and_gains_are_paid(self):
        unpaid = {"expect": "unpaid"}
        self.assertEqual(result_of(unpaid, verdict("rejected")), "caught")
        self.assertEqual(result_of(unpaid, verdict("accepted", 1.02)), "unpaid")
        self.assertEqual(result_of(unpaid, verdict("accepted")), "unpaid")
        self.assertEqual(result_of(unpaid, verdict("accepted", 1.03)), "paid")

    def test_the_machine_has_not_caught_it(self):
        for expect in ("unpaid", "refused", "poorer"):
            self.assertEqual(result_of({"expect": expect}, verdict("infrastructure")), "machine")

    def test_what_does_not_compile_is_not_caught(self):
        found = verdict("rejected", category="compile_error")
        self.assertEqual(result_of({"expect": "unpaid", "contract": "native-cpu"}, found), "dead")
        self.assertEqual(result_of({"expect": "unpaid", "contract": "torch-cpu"}, found), "caught")

    def test_a_variant_that_did_not_attack_is_not_caught(self):
        for expect in ("unpaid", "refused", "silent", "poorer"):
            found = verdict("rejected", error={"message": "RuntimeError: no hold: Serving has no places (line 9)"})
            self.assertEqual(result_of({"expect": expect, "marks": []}, found), "dead")

    def test_what_failed_by_itself_is_not_caught(self):
        x = {"expect": "unpaid", "contract": "torch-cuda"}
        self.assertEqual(
            result_of(x, verdict("rejected", error={"category": "init_error", "message": "RuntimeError: x"})), "dead"
        )
        for message, result in (("AttributeError: y", "dead"), ("PermissionError: refused", "caught")):
            self.assertEqual(
                result_of(x, verdict("rejected", error={"category": "runtime_error", "message": message})), result
            )

    def test_what_is_unchanged_is_unpaid(self):
        found = verdict("accepted", 1.3, integrity={"findings": [{"rule": "unchanged"}]})
        self.assertEqual(result_of({"expect": "unpaid"}, found), "unpaid")

    def test_what_is_forbidden_is_paid_when_it_is_accepted(self):
        self.assertEqual(result_of({"expect": "refused"}, verdict("accepted", 0.9)), "paid")

    def test_words_that_come_back(self):
        x = {"expect": "silent", "marks": ["KM1"]}
        self.assertEqual(result_of(x, verdict("rejected", error={"message": "it said KM1 4 8"})), "paid")
        self.assertEqual(result_of(x, verdict("rejected", error={"message": "it said KM1 4 8"}, sealed=True)), "caught")
        self.assertEqual(result_of(x, verdict("rejected", error={"message": "it ended"})), "caught")

    def test_ending_pays_no_more_than_being_wrong(self):
        x = {"expect": "poorer"}
        self.assertEqual(result_of(x, verdict("rejected", reward=0.15), verdict("rejected", reward=0.075)), "paid")
        self.assertEqual(result_of(x, verdict("rejected", reward=0.075), verdict("rejected", reward=0.075)), "caught")


class Batches(unittest.TestCase):
    def test_all_classes_come_before_the_next_seed(self):
        seeds = [x["seed"] for x in variants([], ["native-cpu"], lambda _row: 2)]
        self.assertEqual(seeds, sorted(seeds))
        self.assertEqual(set(seeds), {0, 1})

    def test_the_first_seed_of_all_contracts_comes_before_most_others(self):
        found = list(variants([], ["native-cpu", "torch-cpu"], lambda _row: 30, first=3))
        batches = commands(found)
        self.assertEqual(sum(len(rows) for _, rows in batches), len(found))
        first = len([x for x in found if x["seed"] == 3])
        begin = [x for _, rows in batches for x in rows][:first]
        self.assertEqual({x["seed"] for x in begin}, {3})
        self.assertEqual({(x["class"], x["contract"]) for x in begin}, {(x["class"], x["contract"]) for x in found})

    def test_few_variants_of_other_options_have_one_command(self):
        found = list(variants([], ["torch-cuda"], lambda row: row.get("variants", 5)))
        clocks = [options for options, _ in commands(found) if options[-1] == "device"]
        self.assertEqual(len(clocks), 1)

    def test_variants_of_one_problem_come_together(self):
        ((_, rows),) = commands(list(variants(["look_at_contents"], ["torch-cuda"], lambda _row: 26)))
        self.assertEqual(rows[0]["seed"], 0)
        tasks = [str(x["task"]) for x in rows if 0 < x["seed"] < 25]
        self.assertEqual(len(set(tasks)), 1 + sum(a != b for a, b in zip(tasks, tasks[1:])))


class Distinct(unittest.TestCase):
    """As many variants are attacks of their own as are counted."""

    def claimed(self):
        return {
            (row["name"], contract): row.get("variants", VARIANTS)
            for row in table()["classes"]
            for contract, cell in row["cells"].items()
            if cell.get("generator")
        }

    def made(self):
        found = collections.defaultdict(list)
        for x in variants([], table()["contracts"], lambda row: row.get("variants", VARIANTS)):
            found[x["class"], x["contract"]].append(x)
        return found

    def test_no_seed_gives_what_another_gives(self):
        found = {key: len({digest_of(x) for x in made}) for key, made in self.made().items()}
        self.assertEqual(found, self.claimed())

    def test_they_differ_in_more_than_comments_and_marks(self):
        found = {key: len({essence(x) for x in made}) for key, made in self.made().items() if key[0] != "unchanged"}
        self.assertEqual(found, {key: n for key, n in self.claimed().items() if key[0] != "unchanged"})

    def test_there_are_fifty_on_request(self):
        for name, contract in self.claimed():
            made = list(variants([name], [contract], lambda _row: 50))
            self.assertEqual(len({digest_of(x) for x in made}), 50, f"{name} {contract}")

    def test_a_class_without_another_variant_says_so(self):
        from generators import CLASSES, make

        CLASSES["three of them"] = lambda draw, _contract: {"task": "native/row_sum", "source": str(draw.randrange(3))}
        self.addCleanup(CLASSES.pop, "three of them")
        self.assertEqual({make("three of them", seed, "native-cpu")["source"] for seed in range(3)}, {"0", "1", "2"})
        with self.assertRaisesRegex(RuntimeError, "three of them has only 3 variants for native-cpu"):
            make("three of them", 3, "native-cpu")

    def test_what_is_judged_twice_is_told(self):
        rows = [{"class": "a", "contract": "torch-cuda", "variant": x} for x in "xyx"]
        self.assertEqual(repeats(rows + [rows[0] | {"class": "b"}]), ["a of torch-cuda 2 of 3"])


def in_lane(row, lanes):
    return row["contract"].split("-")[0] in lanes


class OtherRuns(unittest.TestCase):
    def results(self, *rows, commit="c", contract="torch-cuda"):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        lines = [
            json.dumps({"class": "a", "contract": contract, "seed": seed, "result": result, "commit": commit})
            for seed, result in rows
        ]
        (pathlib.Path(folder.name) / "matrix.results.ndjson").write_text("\n".join(lines) + '\n{"cut')
        return folder.name

    def test_what_two_runs_judged_counts_once_and_as_the_worse(self):
        first = self.results((0, "caught"), (1, "paid"), (1, "unpaid"), (2, "paid"))
        second = self.results((2, "caught"), (3, "machine"))
        found = rows_of_other_runs([first, second], {"c": ALL}, in_lane)
        self.assertEqual(
            {key[2]: row["result"] for key, row in found.items()}, {0: "caught", 1: "unpaid", 2: "paid", 3: "machine"}
        )

    def test_what_holds_no_longer_hides_nothing_that_does(self):
        folders = [self.results((0, "caught"), commit="c"), self.results((0, "paid"), commit="d")]
        found = rows_of_other_runs(folders, {"c": ALL, "d": ALL[:2]}, in_lane)
        self.assertEqual([row["result"] for row in found.values()], ["caught"])

    def test_another_commit_is_another_matrix(self):
        with self.assertRaises(SystemExit):
            rows_of_other_runs([self.results((0, "caught"), commit="d")], {"c": ALL})
        self.assertEqual(
            len(rows_of_other_runs([self.results((0, "caught"), commit="d")], {"c": ALL, "d": ALL}, in_lane)), 1
        )

    def test_a_lane_that_has_changed_since_is_judged_again(self):
        def count(contract):
            return len(
                rows_of_other_runs(
                    [self.results((0, "caught"), contract=contract)], {"c": ["native", "device"]}, in_lane
                )
            )

        self.assertEqual((count("native-cuda"), count("torch-cuda")), (1, 0))

    def test_another_source_is_another_variant(self):
        x, same = (next(iter(variants(["rows_slowed"], ["torch-cuda"], lambda _row: 1))) for _ in range(2))
        self.assertEqual(digest_of(x), digest_of(same))
        for name in ("source", "task", "clock"):
            self.assertNotEqual(digest_of(x), digest_of(x | {name: "other"}))

    def test_what_a_generator_no_longer_makes_is_not_counted(self):
        x = next(iter(variants(["rows_slowed"], ["torch-cuda"], lambda _row: 1)))
        row = {"class": "rows_slowed", "contract": "torch-cuda", "seed": 0, "variant": digest_of(x)}
        self.assertTrue(holds_today(row, ["torch"]))
        self.assertFalse(holds_today(row, ["native", "device"]))
        for other in ({"variant": "older"}, {"seed": 1}, {"class": "no such class"}):
            self.assertFalse(holds_today(row | other, ALL))

    def test_where_a_language_is_wanted_what_counts_kernels_must_be_the_same(self):
        x = next(iter(variants(["only_while_profiled"], ["torch-cuda"], lambda _row: 1)))
        row = {"class": "only_while_profiled", "contract": "torch-cuda", "seed": 0, "variant": digest_of(x)}
        self.assertTrue(holds_today(row, ALL))
        self.assertFalse(holds_today(row, ["native", "device", "torch"]))


class SameCode(unittest.TestCase):
    def git(self, *words):
        done = subprocess.run(["git", "-C", SOURCES, *words], capture_output=True, text=True)
        return done.stdout.split() if done.returncode == 0 else []

    def test_commits_whose_verdicts_hold_are_listed_and_no_other(self):
        head = self.git("rev-parse", "--short=12", "HEAD")
        if not head:
            self.skipTest("there is no git repository here")
        said = subprocess.run(
            [SOURCES / "launch/tools/packaging/same_code.sh"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        listed = [(line.split()[0], line.split()[1:]) for line in said]
        self.assertEqual(listed[0], (head[0], ALL))
        for (newer, _), (_, contracts) in zip(listed, listed[1:]):
            changed = self.git("diff", "--name-only", newer + "^", newer, "--", "gpu")
            torch = [x for x in changed if x.startswith("gpu/torch/")]
            rows = [
                x
                for x in changed
                if x.startswith(("gpu/referee/device/", "gpu/referee/row_arithmetic.", "gpu/referee/CMakeLists.txt"))
            ]
            self.assertEqual(sorted(torch + rows), sorted(changed), newer)
            self.assertFalse(torch and "torch_language" in contracts, newer)
            self.assertFalse(rows and set(contracts) & {"native", "device"}, newer)
            self.assertIn(contracts, (ALL, ALL[:3], ALL[:2], ALL[2:], ALL[2:3]))

    def test_of_torch_only_words_and_what_counts_kernels_may_differ(self):
        older = """'What it does.'
from kernelmill_torch import buffers
def answer(self, op):
    if op == "seed":
        return seed()
    elif op == "profile":
        return profile(self)
def profile(state):
    return 1
"""
        newer = (
            older.replace("buffers", "buffers, counted")
            .replace("profile(self)", "counted.stop()")
            .replace("What", "Which")
            .replace("return 1", "return 2  # now")
        )
        path = "gpu/torch/kernelmill_torch/candidate.py"
        self.assertTrue(same_torch.is_alike(path, older, newer))
        counts = "class Count:\n    def stop(self):\n        return 1\n"
        self.assertTrue(same_torch.is_alike(same_torch.COUNTED, counts, counts.replace("1", "2")))
        self.assertFalse(same_torch.is_alike(same_torch.COUNTED, counts, "import torch.profiler\n" + counts))
        self.assertFalse(
            same_torch.is_alike(
                "gpu/torch/kernelmill_torch/bench.py",
                "def profile():\n    return 1\n",
                "def profile():\n    return 2\n",
            )
        )
        self.assertFalse(same_torch.is_alike(path, 'if op != "profile":\n    a()\n', 'if op != "profile":\n    b()\n'))
        for change in (
            ("seed()", "seed(1)"),
            ("buffers", "buffers, native"),
            ('"seed"', '"seeds"'),
            ("def answer(self, op)", "def answer(self, op, x=1)"),
        ):
            self.assertFalse(same_torch.is_alike(path, older, newer.replace(*change)), change)
        self.assertFalse(same_torch.is_alike("gpu/torch/torch_evaluation.cpp", "int a;", "int b;"))

    def test_of_whose_kernels_ran_what_others_ask_must_be_the_same(self):
        older = """import re
KERNEL = re.compile("a")
CUDA_KERNEL = re.compile("b")
def may_compile_when_called(source):
    return KERNEL.search(source)
def own_share(profile, own):
    return 1
"""
        newer = (
            older.replace("import re", "import ast\nimport re")
            .replace('"b"', '"c"')
            .replace("own):\n    return 1", "own, language):\n    return 2")
        )
        self.assertNotEqual(newer, older)
        self.assertTrue(same_torch.is_alike(same_torch.KERNELS, older, newer))
        for change in (
            ('"a"', '"aa"'),
            ("import ast", "import os"),
            ("KERNEL.search", "KERNEL.match"),
            ("def own_share", "def other_share"),
        ):
            self.assertFalse(same_torch.is_alike(same_torch.KERNELS, older, newer.replace(*change)), change)
        referee = (
            "from kernelmill_torch import counted, kernels\nLEAST_SHARE = 1\nMOST = 2\ndef measure_share(self):\n"
            "    return counted\n"
        )
        moved = (
            "from kernelmill_torch import kernel_share, kernels\nMOST = 2\ndef measure_share(self):\n"
            "    return kernel_share\n"
        )
        self.assertTrue(same_torch.is_alike(same_torch.REFEREE, referee, moved))
        self.assertFalse(same_torch.is_alike(same_torch.REFEREE, referee, moved.replace("2", "3")))

    def test_no_other_module_reads_what_counts_kernels(self):
        folder = SOURCES / "gpu/torch/kernelmill_torch"
        for file in folder.glob("*.py"):
            path = str(file.relative_to(SOURCES))
            tree = same_torch.WithoutCounting(path).visit(ast.parse(file.read_text()))
            for node in ast.walk(tree):
                if path == same_torch.REFEREE and isinstance(node, ast.FunctionDef) and node.name == "check_language":
                    node.body = []
            for node in ast.walk(tree):
                if isinstance(node, ast.Name):
                    self.assertNotIn(node.id, same_torch.COUNTING.get(path, set()) | same_torch.COUNTING_MODULES, path)
                elif (
                    isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "kernels"
                ):
                    self.assertNotIn(node.attr, same_torch.COUNTING[same_torch.KERNELS], path)
                elif isinstance(node, ast.ImportFrom) and node.module in (
                    "kernelmill_torch.kernels",
                    "kernelmill_torch.counted",
                ):
                    self.fail(path)

    def test_torch_includes_nothing_that_makes_rows_of_the_other_contracts(self):
        names = re.search(r'row_sources="(.*)"', (SOURCES / "launch/tools/packaging/same_code.sh").read_text())[
            1
        ].split("|")
        self.assertIn("quiet", names)
        for path in (SOURCES / "gpu").rglob("*.?pp"):
            if not path.is_relative_to(SOURCES / "gpu/referee"):
                said = path.read_text()
                self.assertFalse([x for x in names if f"device/{x}.hpp" in said or "row_arithmetic.hpp" in said], path)


class Time(unittest.TestCase):
    def test_time_is_shared_by_what_is_left(self):
        self.assertEqual(share_of(START_SECONDS * 2 + 90, [1], [[1, 1]]), START_SECONDS + 30)
        self.assertEqual(share_of(90, [1, 1], []), 90)
        self.assertEqual(share_of(START_SECONDS / 2, [1], [[1]]), START_SECONDS / 2)
        self.assertEqual(share_of(float("inf"), [1], [[1]]), float("inf"))

    def test_a_few_variants_have_time_for_the_start_of_their_command(self):
        batches = [rows for _, rows in commands(list(variants([], ["torch-cuda"], lambda row: row.get("variants", 5))))]
        for number, rows in enumerate(batches):
            self.assertGreaterEqual(share_of(900, rows, batches[number + 1 :]), START_SECONDS)

    def test_what_its_command_had_no_time_for_is_asked_for_again_before_the_last_command(self):
        asked = []

        def verdicts_of(name, lines, **_given):
            asked.append((name, [line[0] for line in lines]))
            for line in lines[:1] if len(asked) == 1 else lines:
                yield {"name": line[0]}
                yield {"name": line[0]}  # said twice, it counts once

        found = list(variants(["rows_slowed", "crash_pays"], ["torch-cuda"], lambda _row: 20))
        sizes = [len(rows) for _, rows in commands(found)]
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(matrix, "OUT", pathlib.Path(folder)),
            mock.patch.object(matrix, "verdicts_of", verdicts_of),
            mock.patch.object(
                matrix,
                "write_variant",
                lambda _root, _folder, x: [
                    (x["name"] + end, "", "", "") for end in ("", ".companion")[: 1 + ("companion" in x)]
                ],
            ),
        ):
            came = [x["name"] for x, *_ in matrix.judged(found, "cuda", folder, lambda: 1000)]
        self.assertGreater(len(sizes), 1)
        self.assertEqual(len(asked), len(sizes) + 1)
        self.assertEqual(len({name for name, _ in asked}), len(asked))
        self.assertEqual(sorted(came), sorted(x["name"] for x in found))
        self.assertEqual(
            {x.removesuffix(".companion") for x in asked[-1][1]}, {x["name"] for x in commands(found)[-1][1]}
        )

    def test_parts_share_all_the_time_there_is(self):
        self.assertEqual(set(USUALLY), set(PARTS))
        left, given = 1650.0, []
        names = ["planted", "torch_same", "truth", "matrix"]
        for number, name in enumerate(names):
            given.append(common.share_of(left, USUALLY, names[number:]))
            left -= given[-1] / 2  # each leaves a half
        self.assertLess(given[0], given[1])
        self.assertAlmostEqual(given[-1], left + given[-1] / 2)

    def test_as_many_copies_as_were_asked_for_take_as_long(self):
        self.assertEqual(usual_seconds(200), USUALLY)
        self.assertEqual(usual_seconds(40)["same"], 24)

    def test_quiet_and_busy_rounds_take_turns(self):
        rows = [("a", "t", "f", "native", "any"), ("b", "t", "f", "torch", "cuda")]
        found = list(rounds(rows, 1000))
        self.assertEqual(sum(len(batch) for _, _, batch in found), 1000)
        self.assertEqual(sum(len(batch) for busy, _, batch in found if busy), 500)


if __name__ == "__main__":
    unittest.main()
