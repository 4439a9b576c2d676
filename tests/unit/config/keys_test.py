#!/usr/bin/python3
"""Configuration keys that texts name exist, and every key is read by code.

A text is a string literal of the product, where hints stand, or a line of the documents. That a key
is read is asked of the compiler: the member that the key sets is marked as deprecated in a copy of
run_config.hpp, and the compiler names each use. Code of launch/config/, which sets and checks
members, does not count.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"]).parent
HEADER = "launch/config/run_config.hpp"
CODE = ("actors", "gpu", "launch", "messages", "retrieval", "storage")
# Names of files, and of fields of other documents, that look like keys.
OTHERS = re.compile(r"\.(json|hpp|cpp|h|cu|py|md|capnp|txt|ndjson|jsonl|pem|sh|log)$")
# Keys that wait for their reader; none may be added.
UNREAD: set = set()


def fields_of_turns():
    """What `kernelmill query` calls things; some begin as sections of the configuration do."""
    return {
        name
        for path in (SOURCE / "launch/analysis/study").glob("*.cpp")
        for name in re.findall(r'"([a-z_]+(?:\.[a-z_0-9]+)+)"', path.read_text())
    }


def schema_keys():
    def walk(node, prefix):
        for name, child in node.get("properties", {}).items():
            yield prefix + name, "properties" not in child
            yield from walk(child, prefix + name + ".")

    schema = json.loads((SOURCE / "configs/kernelmill.schema.json").read_text())
    return {name: leaf for name, leaf in walk(schema, "") if name != "$schema"}


def keys_of_training():
    """Of `kernelmill train`, which has a file of its own."""
    return set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", (SOURCE / "docs/reference/training.md").read_text()))


def keys_of_orders():
    """What an order over HTTP names in place of a key of the machine: its servers' keys."""
    text = (SOURCE / "launch/server/rollouts/order_config.cpp").read_text()
    servers = re.search(r"asked_servers[^;]*;", text).group(0)
    return {f"{name}.key" for name in re.findall(r'"([^"]+)"', servers)}


class Texts(unittest.TestCase):
    def setUp(self):
        self.known = schema_keys()
        self.fields = fields_of_turns() | keys_of_training() | keys_of_orders()
        sections = sorted(name for name, leaf in self.known.items() if not leaf and "." not in name)
        self.word = re.compile(r"(?<![\w./-])(?:%s)(?:\.[a-z_][a-z_0-9]*)+(?![\w/(-])" % "|".join(sections))

    def wrong_words(self, text):
        return [
            w for w in self.word.findall(text) if w not in self.known and w not in self.fields and not OTHERS.search(w)
        ]

    def test_hints_and_messages_name_keys_that_exist(self):
        literal = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
        seen = 0
        for folder in CODE:
            for path in sorted((SOURCE / folder).rglob("*.[ch]pp")):
                text = re.sub(r"^\s*(#include|//).*$", "", path.read_text(), flags=re.M)
                text = re.sub(r'"\s*\n\s*"', "", text)  # one literal on several lines
                for found in literal.findall(text):
                    seen += len(self.word.findall(found))
                    self.assertEqual(self.wrong_words(found), [], f"{path}: {found}")
        self.assertGreater(seen, 50, "the walk finds no hints")

    def test_documents_name_keys_that_exist(self):
        for path in sorted((SOURCE / "docs").rglob("*.md")) + [SOURCE / "README.md"]:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                for code in re.findall(r"`([^`]*)`", line):
                    self.assertEqual(self.wrong_words(code), [], f"{path}:{number}: {code}")


def marked_header(text):
    """The header with every member and function marked, the struct of each section, and keys that functions read."""
    structs, inside, lines = {}, None, []
    functions, body = {}, set()
    for line in text.splitlines():
        opened = re.match(r"struct (\w+) \{", line)
        if opened:
            opened_name = opened.group(1)
            inside = structs.setdefault(opened_name, {})
        member = re.match(r"  ([\w:<>]+(?: [\w:<>]+)*) (\w+)( = [^;]*)?;", line)
        function = re.match(r"  \w+ (\w+)\(\) const \{", line)
        if function:
            body = functions.setdefault(f"{opened_name}::{function.group(1)}", set())
            line = "  [[deprecated]]" + line[1:]
        elif line.startswith("    "):
            body.update(re.findall(r"\b\w+\.\w+\b", line))
        if line.startswith("};"):
            inside = None
        if inside is not None and member:
            inside[member.group(2)] = member.group(1)
            line = "  [[deprecated]]" + line[1:]
        lines.append(line)
    return "\n".join(lines) + "\n", structs, functions


def members_of(structs):
    """Key -> "struct::member", as the compiler names it."""
    result = {}

    def walk(struct, prefix):
        for name, kind in structs[struct].items():
            if kind in structs:
                walk(kind, prefix + name + ".")
            else:
                result[prefix + name] = f"{struct}::{name}"

    walk("run_config", "")
    return result


def sources_of(entry):
    """The sources of one compile command: several where KERNELMILL_UNITY makes one unit of them."""
    path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
    if path.parent.name == "Unity" and path.suffix == ".cxx" and path.exists():
        return [pathlib.Path(x).resolve() for x in re.findall(r'^#include "(.*\.cpp)"', path.read_text(), re.M)]
    return [path] if path.suffix == ".cpp" and path.exists() else []


class Readers(unittest.TestCase):
    def test_every_key_is_read_by_code(self):
        text, structs, functions = marked_header((SOURCE / HEADER).read_text())
        members = members_of(structs)
        self.assertEqual(set(members), {name for name, leaf in schema_keys().items() if leaf})
        unread = {k: m for k, m in members.items() if k not in UNREAD}
        with tempfile.TemporaryDirectory() as scratch:
            copy = pathlib.Path(scratch) / HEADER
            copy.parent.mkdir(parents=True)
            copy.write_text(text)
            for command in self.readers():
                if not unread:
                    break
                used = self.uses(command, scratch)
                by_function = set().union(*(functions[x] for x in used & functions.keys()))
                unread = {k: m for k, m in unread.items() if m not in used and k not in by_function}
        self.assertEqual(sorted(unread), [], "keys that no code reads")

    def readers(self):
        """Compile commands of files that speak of a configuration, those that say most first."""
        database = json.loads(
            subprocess.run(
                ["ninja", "-C", str(BUILD), "-t", "compdb"], check=True, capture_output=True, text=True
            ).stdout
        )
        ranked = []
        for entry in database:
            text = "\n".join(
                path.read_text()
                for path in sources_of(entry)
                if path.is_relative_to(SOURCE / "launch") and not path.is_relative_to(SOURCE / "launch/config")
            )
            words = len(re.findall(r"\b(?:config|section|options|x)\w*\.\w+", text))
            if re.search(r"run_config|_section\b|config\.\w", text):
                ranked.append((words, entry))
        self.assertTrue(ranked)
        return [entry for _, entry in sorted(ranked, key=lambda x: -x[0])]

    def uses(self, entry, scratch):
        words = shlex.split(entry["command"])
        if "ccache" in words[0]:
            words = words[1:]
        at = words.index("-o")
        del words[at : at + 2]
        words[1:1] = ["-I" + scratch]
        words += ["-fsyntax-only", "-Wdeprecated-declarations", "-Wno-error"]
        done = subprocess.run(
            words, cwd=entry["directory"], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
        )
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        # A use in a header counts nowhere: headers of launch/config/ are among them.
        found = re.findall(r"^\S+\.cpp:.*'[^']*?(\w+::\w+)(?:\(\) const)?' is deprecated", done.stderr, re.M)
        return set(found)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
