"""What attacks of our own reach for inside a candidate's process is there: one that finds nothing proves nothing."""

import ast
import json
import pathlib
import re
import sys
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch import buffers, candidate, native

ROOT = pathlib.Path(__file__).resolve().parents[3]
HACKS, MATRIX = ROOT / "tests" / "exploits" / "torch_corpus" / "hacks", ROOT / "tests" / "exploits" / "matrix"
OURS = ROOT / "gpu" / "torch" / "kernelmill_torch"
SEEDS = range(5)
COMMANDS = ("NOTHING", "WAKE", "CALL", "COPY", "LEAVE", "WARM", "BATCH", "BATCH_NOW", "FINISH")


def sources():
    """{name: text} of all hacks, and of what generators make of the contract `torch`."""
    found = {path.name: path.read_text() for path in sorted(HACKS.glob("*.py"))}
    sys.path.insert(0, str(MATRIX))
    from generators import make

    for row in json.loads((MATRIX / "matrix.json").read_text())["classes"]:
        for contract, cell in row["cells"].items():
            if contract.startswith("torch") and cell.get("generator"):
                found |= {
                    f"{row['name']}.{contract}.{seed}": make(row["name"], seed, contract)["source"] for seed in SEEDS
                }
    return found


class Lib:
    """Has every function that the library is asked for, and that native.py declares."""

    def __getattr__(self, name):
        if not name.startswith("km_"):
            raise AttributeError(name)
        return lambda *_: 0


def text_of(node):
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def name_of(node):
    """`x` of x, and of any self.x."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


class Reaching(ast.NodeVisitor):
    """Names that a source takes of us: attributes of who serves, of a set of buffers, and variables of its loop."""

    def __init__(self, tree):
        self.serving, self.sets, self.variables, self.numbers = set(), set(), set(), {}
        self.scopes = {
            x.targets[0].id
            for x in ast.walk(tree)
            if isinstance(x, ast.Assign) and isinstance(x.targets[0], ast.Name) and name_of(x.value) == "f_locals"
        }
        self.lookup = False  # inside the function that finds who serves
        self.visit(tree)

    def visit_FunctionDef(self, node):
        before, self.lookup = self.lookup, node.name == "server"
        if self.lookup:
            loops = (x for x in ast.walk(node) if isinstance(x, ast.For) and isinstance(x.iter, ast.Tuple))
            self.serving |= {text_of(x) for loop in loops for x in loop.iter.elts}
        self.generic_visit(node)
        self.lookup = before

    def visit_Attribute(self, node):
        if name_of(node.value) == "server":
            self.serving.add(node.attr)
        if name_of(node.value) in ("one", "value") and node.attr in ("inputs", "outputs"):
            self.sets.add(node.attr)
        self.generic_visit(node)

    def visit_Call(self, node):
        if name_of(node.func) == "hasattr" and (name := text_of(node.args[1])):
            (self.serving if self.lookup else self.sets).add(name)
        if name_of(node.func) == "get" and isinstance(node.func, ast.Attribute) and self.is_scope(node.func.value):
            self.variables.add(text_of(node.args[0]))
        self.generic_visit(node)

    def visit_Subscript(self, node):
        if self.is_scope(node.value) and text_of(node.slice):
            self.variables.add(text_of(node.slice))
        self.generic_visit(node)

    def visit_Compare(self, node):
        if isinstance(node.ops[0], (ast.In, ast.NotIn)) and self.is_scope(node.comparators[0]) and text_of(node.left):
            self.variables.add(text_of(node.left))
        self.generic_visit(node)

    def visit_Assign(self, node):
        names = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else [node.targets[0]]
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for name, value in zip(names, values):
            if isinstance(name, ast.Name) and isinstance(value, ast.Constant) and type(value.value) is int:
                self.numbers[name.id] = value.value
        self.generic_visit(node)

    def is_scope(self, node):
        return name_of(node) == "f_locals" or isinstance(node, ast.Name) and node.id in self.scopes


def offsets_of_page():
    """{field: bytes before it} of the page of commands, from page.hpp."""
    struct = re.search(r"struct page \{(.*?)\n\};", (OURS.parent / "native" / "page.hpp").read_text(), re.S).group(1)
    found, at = {}, 0
    for aligned, bits, name in re.findall(
        r"^\s*(alignas\(64\) )?(?:std::atomic<)?uint(32|64)_t>? (\w+);", struct, re.M
    ):
        size = 64 if aligned else int(bits) // 8
        at = (at + size - 1) // size * size
        found[name] = at
        at += int(bits) // 8
    found["open"] = (at + 63) // 64 * 64  # the first of batch_words
    found["completed"] = found["open"] + 64  # the second
    return found


@unittest.skipIf(torch is None, "there is no torch here")
class Attacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sources = sources()
        cls.reaching = {
            name: Reaching(ast.parse(text)) for name, text in cls.sources.items() if name != "syntax_error.py"
        }
        cls.server = candidate.Serving(Lib(), None, 0, "cpu")

    def all_of(self, kind):
        return {(name, x) for name, one in self.reaching.items() for x in getattr(one, kind) if x and x != "self"}

    def test_there_are_all_of_them_and_some_reach_for_us(self):
        self.assertGreater(len([x for x in self.sources if "." not in x.removesuffix(".py")]), 150)
        self.assertGreater(len([x for x in self.sources if ".torch-" in x]), 200)
        for kind, least in (("serving", 30), ("sets", 10), ("variables", 20)):
            self.assertGreater(len(self.all_of(kind)), least, kind)

    def none(self, complaints):
        self.assertEqual(sorted(complaints), [])

    def test_functions_of_the_library_are_declared(self):
        declared = set(re.findall(r'"(km_\w+)"', (OURS / "native.py").read_text()))
        self.assertIn("km_page_wait", declared)
        self.none(
            f"{name}: {x}" for name, text in self.sources.items() for x in set(re.findall(r"\bkm_\w+", text)) - declared
        )

    def test_a_server_has_what_is_taken_of_it(self):
        self.none(f"{name}: Serving has no {x}" for name, x in self.all_of("serving") if not hasattr(self.server, x))

    def test_a_server_is_called_so(self):
        named = {
            (name, x)
            for name, text in self.sources.items()
            for x in re.findall(r'type\(found\).__name__ == "(\w+)"', text)
        }
        self.assertGreater(len(named), 5)
        self.none(f"{name}: {x}" for name, x in named if x != type(self.server).__name__)

    def test_sets_are_those_of_places(self):
        spec = buffers.TensorSpec((4,), (1,), torch.float32)
        layout = buffers.Layout([spec], [spec], sets=2)
        memory = torch.zeros(layout.sets * layout.set_bytes + layout.places[-1], dtype=torch.uint8)
        places = buffers.places_of(memory, layout)
        self.assertEqual(
            (type(places), type(places[0]), len(places), len(places[0])), (list, list, len(buffers.PLACES), 2)
        )
        self.assertEqual(
            sorted(buffers.PLACES), list(buffers.PLACES)
        )  # else the first number does not say where sets begin
        self.none(f"{name}: a set has no {x}" for name, x in self.all_of("sets") if not hasattr(places[0][0], x))

    def test_the_loop_has_the_variables_that_are_looked_for(self):
        known = candidate.Serving.clocked.__code__.co_varnames
        self.none(f"{name}: {x}" for name, x in self.all_of("variables") if x not in known)

    def test_commands_have_the_numbers_of_the_page(self):
        self.assertEqual([getattr(native, x) for x in COMMANDS], list(range(len(COMMANDS))))
        named = {
            (name, x, one.numbers[x]) for name, one in self.reaching.items() for x in set(COMMANDS) & set(one.numbers)
        }
        self.assertLessEqual({"WAKE", "COPY", "WARM", "BATCH", "BATCH_NOW"}, {x for _, x, _ in named})
        self.none(f"{name}: {x} is {number}" for name, x, number in named if number != getattr(native, x))

    def test_commands_are_called_by_name(self):
        bare = re.compile(r"(command\(\w+\)|self\.word\(\d+\)) (==|!=|in) \(?\d")
        self.none(name for name, text in self.sources.items() if bare.search(text))

    def test_words_of_the_page_lie_where_they_are_written(self):
        offsets = offsets_of_page()
        self.assertEqual(offsets["sequence"], 0)
        named = {
            (name, x, one.numbers[x]) for name, one in self.reaching.items() for x in one.numbers if x.endswith("_AT")
        }
        words = {"SEQUENCE_AT", "COMMAND_AT", "DONE_AT", "OPEN_AT", "COMPLETED_AT"}
        self.assertLessEqual(words, {x for _, x, _ in named})
        self.none(f"{name}: {x} is {at}" for name, x, at in named if at != offsets[x[:-3].lower()])

    def test_files_in_memory_and_modules_have_their_names(self):
        ours = "".join(path.read_text() for path in OURS.glob("*.py"))
        for name, text in self.sources.items():
            self.none(
                f"{name}: {x}" for x in re.findall(r'"(kernelmill-\w+)" in', text) if f'memory_file("{x}"' not in ours
            )
            self.none(
                f"{name}: {x}"
                for x in re.findall(r"\bkernelmill_torch\.(\w+)", text)
                if not (OURS / f"{x}.py").exists()
            )

    def test_an_attack_that_looks_for_us_says_when_there_is_nothing(self):
        looks = re.compile(r"f_locals|\"kernelmill-page\"|gc\.get_objects|startswith\(\"kernelmill\"\)")
        others = {"caller_frames.py", "gc_search.py", "poisoned_expectation.py", "reference_by_gc.py"}  # for anybody's
        self.none(
            name
            for name, text in self.sources.items()
            if looks.search(text) and name not in others and not re.search(r'RuntimeError\(f?"no hold: ', text)
        )

    # On a GPU models are made where new tensors are the GPU's; and calls that warm up have no variable for their set.
    def test_memory_of_the_host_is_asked_for_by_name(self):
        self.none(
            f"{name}: {line.strip()}"
            for name, text in self.sources.items()
            for line in text.splitlines()
            if ("pin_memory" in line or "torch.Generator()" in line) and 'device="cpu"' not in line
        )

    def test_an_attack_that_looks_for_the_set_of_an_input_looks_into_lists(self):
        looking = {
            name: text for name, text in self.sources.items() if re.search(r"\by is x\b|inputs\[0\] is x\b", text)
        }
        self.assertLessEqual({"returned_buffer.py", "skipped_copy.py", "whole_row_at_once.py"}, set(looking))
        self.none(name for name, text in looking.items() if not re.search(r"isinstance\(value, \(?list\b", text))

    def test_lists_of_objects_have_those_from_before_the_fork(self):
        self.assertIn("gc.freeze()", (OURS / "zygote.py").read_text())
        self.none(
            name for name, text in self.sources.items() if "gc.get_objects" in text and "gc.unfreeze()" not in text
        )


if __name__ == "__main__":
    unittest.main()
