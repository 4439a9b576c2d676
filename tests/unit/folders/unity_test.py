#!/usr/bin/python3
"""Names in the unnamed namespaces of one library differ.

With KERNELMILL_UNITY=ON up to 24 sources of a library are one for the compiler, and a name that two of
them keep to themselves is there twice. The compiler says so only where the option is on (CI, packages);
this says it in a second. A function may share its name if its parameters differ, an alias if it
names the same. Libraries marked APART in their CMakeLists.txt are compiled one by one always, and so are
the sources listed behind HOT.
"""

import collections
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
LIBRARY = re.compile(
    r"kernelmill_library\((\w+)((?:\s+(?:ONCE|APART))*)\s+SOURCES\s+([^)]*?)"
    r"(?:HOT\s+([^)]*?))?(?:PUBLIC|PRIVATE|\))"
)
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'|^\s*#[^\n]*',
    re.DOTALL | re.MULTILINE,
)
# What opens or closes a scope, or ends a statement.
PIECE = re.compile(r"[{};]")
NAMESPACE = re.compile(r"^(?:inline\s+)?namespace(?:\s+([\w:]+))?\s*$")
TYPE = re.compile(r"^(?:template\s*<.*?>\s*)?(?:struct|class|enum(?:\s+class)?|union)\s+(\w+)\b(?!.*\()")
ALIAS = re.compile(r"^using\s+(\w+)\s*=\s*(.*)$", re.DOTALL)
FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*(\(.*)$", re.DOTALL)
VALUE = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(?:=.*)?$", re.DOTALL)


def private_names(text):
    """What a source declares in its unnamed namespaces: {(namespace, name, of what)}."""
    text = NOISE.sub(lambda m: '""' if m.group(0).lstrip().startswith(('"', "R")) else "", text)
    scopes = []  # of each open brace: a namespace's name, "" for an unnamed one, None for others
    result = set()
    start = 0
    for found in PIECE.finditer(text):
        statement = " ".join(text[start : found.start()].split())
        start = found.end()
        mark = found.group(0)
        inside = bool(scopes) and "" in scopes and None not in scopes
        if mark == "}":
            if scopes:
                scopes.pop()
            continue
        named = NAMESPACE.match(statement)
        if inside and statement and not named:
            where = "::".join(x for x in scopes if x)
            result |= {(where, *x) for x in declared(statement, mark)}
        if mark == "{":
            scopes.append((named.group(1) or "") if named else None)
    return result


def declared(statement, mark):
    """The names of one statement, without its body; those of what goes on after a `}` are none."""
    if re.match(r"namespace \w+ =|using (?!\w+ =)", statement):
        return []  # the same again is no mistake
    if alias := ALIAS.match(statement):
        return [(alias.group(1), "alias of " + alias.group(2))]
    if type_ := TYPE.match(statement):
        return [(type_.group(1), "type")] if mark == "{" else []
    head = statement.split(" = ")[0]
    if "(" in head:
        if mark == ";" and "constexpr" not in head and "const " not in head:
            return []  # a declaration: its definition counts
        function = FUNCTION.search(head)
        return [(function.group(1), "function " + parameters(function.group(2)))] if function else []
    value = VALUE.search(head)
    return [(value.group(1), "value")] if value and " " in head else []


def parameters(text):
    """Types of parameters, as far as words tell: without names and defaults."""
    inner = text[1 : text.rfind(")")]
    types, depth, one = [], 0, ""
    for c in inner + ",":
        depth += (c in "<([") - (c in ">)]")
        if c == "," and depth == 0:
            types.append(re.sub(r"(?<=[\s&*>])\w+$", "", one.split("=")[0].strip()).strip())
            one = ""
        else:
            one += c
    return "(" + ", ".join(types) + ")"


def libraries():
    """{library: its sources}, of those that are compiled as one."""
    result = {}
    for page in sorted(SOURCE.rglob("CMakeLists.txt")):
        top = page.relative_to(SOURCE).parts[0]
        if top.startswith("build") or top == "tests":
            continue
        for name, words, sources, hot in LIBRARY.findall(page.read_text()):
            if "APART" not in words:
                result[name] = [
                    page.parent / x
                    for x in sources.split()
                    if x.endswith(".cpp") and "$" not in x and x not in hot.split()
                ]
    return result


class Unity(unittest.TestCase):
    def test_names_in_unnamed_namespaces_differ(self):
        twice = []
        for library, sources in libraries().items():
            places = collections.defaultdict(list)
            for path in sources:
                for what in private_names(path.read_text()):
                    places[what[:2]].append((what[2], path.relative_to(SOURCE)))
            for (_, name), there in sorted(places.items()):
                kinds = collections.Counter(kind for kind, _ in there)
                mixed = len(kinds) > 1 and not all(k.startswith("function") for k in kinds)
                same = [k for k, n in kinds.items() if n > 1 and not k.startswith("alias")]
                if (mixed or same) and len({path for _, path in there}) > 1:
                    twice.append(f"{library}: {name} in " + ", ".join(sorted({str(p) for _, p in there})))
        self.assertEqual(twice, [], "\n" + "\n".join(twice))

    def test_reads_what_is_private(self):
        text = """
        namespace a {
        int open(int x) { return x; }
        namespace {
        constexpr int limit = 3; // { not a scope
        struct thing { int inner; };
        using words = std::vector<int>;
        bool good(const thing& x, int y = 1) { int local = y; return "}" && local; }
        } // namespace
        } // namespace a
        """
        self.assertEqual(
            private_names(text),
            {
                ("a", "limit", "value"),
                ("a", "thing", "type"),
                ("a", "words", "alias of std::vector<int>"),
                ("a", "good", "function (const thing&, int)"),
            },
        )


if __name__ == "__main__":
    unittest.main()
