#!/usr/bin/python3
"""One name, one type: two classes of one name in one namespace are one to the linker,
which keeps the functions of either."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = ("messages", "storage", "retrieval", "gpu", "actors", "launch")
TYPE = re.compile(r"^(?:struct|class|enum class|union)\s+(?:\[\[\w+\]\]\s+)?(\w+)(?: final)?(?:\s*:[^:][^;]*)?\s*\{")
NAMESPACE = re.compile(r"^(?:inline )?namespace\s*([\w:]*)\s*\{")


def types_in(text):
    """(namespace, name) of the types that a file defines outside of others; those of unnamed namespaces are its own."""
    inside, result = [], []
    for line in text.splitlines():
        if found := NAMESPACE.match(line):
            if "}" not in line:
                inside.append(found[1])
        elif line.startswith("}") and "namespace" in line:
            inside = inside[:-1]
        elif (found := TYPE.match(line)) and "" not in inside:
            result.append(("::".join(inside), found[1]))
    return result


class Names(unittest.TestCase):
    def test_types_are_found(self):
        text = (
            "namespace a {\nstruct b;\nstruct c {\n};\nnamespace {\nstruct d {\n};\n} // namespace\n"
            "enum class e : int { x };\n}\n"
        )
        self.assertEqual(types_in(text), [("a", "c"), ("a", "e")])

    def test_no_two_types_of_a_namespace_have_one_name(self):
        places = {}
        for folder in FOLDERS:
            for path in sorted((ROOT / folder).rglob("*.[hc]pp")):
                if "native" in path.parts:  # libraries of their own
                    continue
                for name in types_in(path.read_text()):
                    places.setdefault(name, []).append(str(path.relative_to(ROOT)))
        self.assertGreater(len(places), 500)
        self.assertEqual({"::".join(k): v for k, v in places.items() if len(v) > 1}, {})


if __name__ == "__main__":
    unittest.main()
