"""Every generator gives valid sources for 50 seeds, the same for the same seed, and the table has a cell for each."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from generators import CLASSES, CONTRACTS, blame, contexts, luck, make, merged
from generators.text import tasks

EXPLOITS = pathlib.Path(__file__).resolve().parents[2] / "exploits"
REFEREE = EXPLOITS.parents[1] / "gpu"
TABLE = json.loads((EXPLOITS / "matrix" / "matrix.json").read_text())
SEEDS = range(50)
EXPECTED = {"unpaid", "refused", "silent", "poorer"}


def cells(kind):
    return [
        (row["name"], contract, cell[kind])
        for row in TABLE["classes"]
        for contract, cell in row["cells"].items()
        if kind in cell
    ]


def refusal(command, source, suffix):
    """What a compiler says of a source; empty when it takes it."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix) as file:
        file.write(source)
        file.flush()
        return subprocess.run([*command, file.name], capture_output=True, text=True).stderr


class Table(unittest.TestCase):
    def test_each_class_has_one_cell_for_each_contract(self):
        self.assertEqual(tuple(TABLE["contracts"]), CONTRACTS)
        for row in TABLE["classes"]:
            self.assertEqual(tuple(row["cells"]), CONTRACTS, row["name"])
            for cell in row["cells"].values():
                self.assertEqual(len(cell), 1, row["name"])
        names = [row["name"] for row in TABLE["classes"]]
        self.assertEqual(len(names), len(set(names)))

    def test_members_are_files_and_reasons_are_words(self):
        for name, _, members in cells("members"):
            for member in members:
                self.assertTrue((EXPLOITS / member).is_file(), f"{name}: {member}")
        for name, contract, reason in cells("none"):
            self.assertGreater(len(reason), 12, f"{name} {contract}")

    def test_every_generator_has_cells(self):
        self.assertEqual({name for name, _, _ in cells("generator")}, set(CLASSES))


class Numbers(unittest.TestCase):
    """Of ours that attacks have: where these are others, they take hold of nothing."""

    def test_timed_shapes_are_those_of_the_tasks(self):
        for task, others in luck.TASKS.items():
            timed = json.loads((tasks() / task / "task.json").read_text())["timed"]["scalars"]
            self.assertEqual(set(others.split(" || ")), {f"{name} != {value}" for name, value in timed.items()}, task)

    def test_hidden_cases_begin_behind_the_visible_ones(self):
        cases = json.loads((tasks() / "native/row_sum" / "task.json").read_text())["cases"]
        self.assertEqual(min(blame.HIDDEN_CALLS), 3 * sum(not x.get("hidden") for x in cases))
        self.assertLess(max(blame.HIDDEN_CALLS), 3 * len(cases))

    def test_sets_lie_as_far_apart_as_the_referee_puts_them(self):
        text = (REFEREE / "referee" / "device" / "arena.cpp").read_text()
        found = {name: eval(x) for name, x in re.findall(r"constexpr size_t (guard|large|page) = ([\d <]+);", text)}
        self.assertEqual(found, {"guard": merged.GUARD, "large": merged.LARGE, "page": merged.PAGE})

    def test_words_of_the_page_lie_where_they_are_written(self):
        text = (REFEREE / "candidate" / "protocol.hpp").read_text()
        batch = offsets_of(text, "batch_words")
        page = offsets_of(text, "control_page", {"batch_words": (64, 128), "candidate_command": (4, 4)})
        found = {"done": page["done"], "open": page["batch"], "completed": page["batch"] + batch["completed"]}
        self.assertEqual({name: at // 4 for name, at in found.items()}, contexts.WORDS)


def offsets_of(text, name, sizes={}):
    """{field: bytes before it} of a struct of a header; `sizes` are (alignment, bytes) of types that C has not."""
    known = {"uint32_t": (4, 4), "int64_t": (8, 8), "double": (8, 8), "std::atomic<uint32_t>": (4, 4)} | sizes
    struct = re.search(rf"struct {name} \{{(.*?)\n\}};", text, re.S).group(1)
    found, at = {}, 0
    for far, kind, field, count in re.findall(r"^\s*(alignas\(64\) )?([\w:<>]+) (\w+)(?:\[(\w+)\])?;", struct, re.M):
        if kind not in known:
            break  # what comes behind it is asked for by no one of ours
        unit, size = known[kind]
        unit = 64 if far else unit
        at = found[field] = (at + unit - 1) // unit * unit
        at += size * {"": 1, "max_arguments": 16}[count]
    return found


def has_launch_line(text):
    return bool(re.search(r"^[ \t]*//[ \t]*launch:", text, re.MULTILINE))


class LaunchLines(unittest.TestCase):
    """A source of device code without one is refused before anybody looks at what it does."""

    def test_sources_of_device_code_have_one(self):
        for entry in json.loads((EXPLOITS / "gpu_corpus" / "manifest.json").read_text()):
            if entry.get("contract") == "device" and "bad_launch" not in entry.get("rules", []):
                self.assertTrue(has_launch_line((EXPLOITS / "gpu_corpus" / entry["file"]).read_text()), entry["file"])
        for name, contract, _ in cells("generator"):
            if contract == "device-cuda":
                self.assertTrue(has_launch_line(make(name, 0, contract)["source"]), name)

    def test_generated_ones_include_headers_of_devices_alone(self):
        for name, contract, _ in cells("generator"):
            if contract == "device-cuda":
                for seed in range(5):
                    named = re.findall(r"#\s*include\s*[<\"]([^>\"]+)", make(name, seed, contract)["source"])
                    self.assertLessEqual(
                        set(named), {"cuda_fp16.h", "cuda_bf16.h", "mma.h", "cooperative_groups.h"}, name
                    )


class Variants(unittest.TestCase):
    def test_fifty_seeds_give_valid_variants(self):
        for name, contract, _ in cells("generator"):
            sources = set()
            for seed in SEEDS:
                x = make(name, seed, contract)
                self.assertIn(x["expect"], EXPECTED)
                self.assertEqual(x["expect"] == "poorer", "companion" in x)
                self.assertEqual(x["expect"] == "silent", "marks" in x)
                self.assertEqual(x["suffix"] == ".py", contract.startswith("torch"))
                if x["suffix"] == ".py":
                    compile(x["source"], f"{name} {seed}", "exec")
                    self.assertRegex(x["source"], r"(?m)^(class ModelNew\(|ModelNew = )")
                else:
                    self.assertIn("solve(" if contract.startswith("native") else "// launch: ", x["source"])
                    self.assertIn('extern "C"', x["source"])
                if isinstance(x["task"], dict):
                    compile(x["task"]["problem"], f"{name} {seed}", "exec")
                    self.assertRegex(x["task"]["name"], r"^[a-z0-9_]+$")
                sources.add(x["source"] + str(x["task"]))
            self.assertGreater(len(sources), 2, f"{name} {contract}: hardly two are different")

    def test_a_seed_always_gives_the_same(self):
        for name, contract, _ in cells("generator"):
            self.assertEqual(make(name, 7, contract), make(name, 7, contract))

    def test_one_name_is_one_problem(self):
        found = {}
        for name, contract, _ in cells("generator"):
            for seed in SEEDS:
                task = make(name, seed, contract)["task"]
                if isinstance(task, dict):
                    self.assertEqual(
                        found.setdefault((contract[-4:], task["name"]), task["problem"]), task["problem"], task["name"]
                    )

    @unittest.skipUnless(shutil.which("g++"), "there is no g++")
    def test_sources_for_cpus_compile(self):
        for name, contract, _ in cells("generator"):
            if contract == "native-cpu":
                for seed in (0, 1):
                    x = make(name, seed, contract)
                    self.assertNotIn(
                        "error",
                        refusal(["g++", "-std=c++20", "-fsyntax-only", "-w"], x["source"], ".cpp"),
                        f"{name} {seed}",
                    )

    @unittest.skipUnless(shutil.which("nvcc"), "there is no nvcc")
    def test_sources_for_gpus_compile(self):
        for name, contract in (
            ("work_in_an_untimed_call", "device-cuda"),
            ("row_at_once_in_private", "device-cuda"),
            ("calls_side_by_side", "native-cuda"),
            ("timers_left", "native-cuda"),
            ("merged_launches", "device-cuda"),
            ("inputs_that_come_again", "native-cuda"),
            ("second_context", "native-cuda"),
            ("beside_the_gate", "native-cuda"),
            ("gate_opened", "native-cuda"),
            ("over_early", "native-cuda"),
            ("batches_told_apart", "device-cuda"),
            ("awake_between_batches", "native-cuda"),
            ("stream_filled_before", "native-cuda"),
        ):
            x = make(name, 0, contract)
            self.assertNotIn(
                "error",
                refusal(["nvcc", "-std=c++20", "-arch=sm_90", "-c", "-o", "/dev/null"], x["source"], ".cu"),
                name,
            )


if __name__ == "__main__":
    unittest.main()
