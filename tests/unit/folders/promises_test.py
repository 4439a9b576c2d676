#!/usr/bin/python3
"""What the product promises and a search can hold it to.

Every key of the configuration's schema is read by code besides the code that loads and checks it. A
request between actors that CAF gives no deadline has one of its own, in a file that is named here.
"""

import json
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
FLOORS = ("messages", "storage", "retrieval", "gpu", "actors", "launch")
LOADERS = "launch/config/"  # names every key, reads none for a purpose

# CAF takes no deadline back, so these count their own (docs/decisions/0006).
OWN_DEADLINES = {
    "actors/cluster/work_queue.hpp": "leases expire",
    "actors/episode/asking.hpp": "an episode looks at its clock",
    "actors/gather.cpp": "those who answer late are left out",
    "actors/monitor/monitor.cpp": "those who answer late are left out",
}


def product():
    """(name, text) of the product's C++."""
    for floor in FLOORS:
        for path in sorted((SOURCE / floor).rglob("*")):
            if path.suffix in (".cpp", ".hpp"):
                yield path.relative_to(SOURCE).as_posix(), path.read_text()


def keys_of(schema, path=()):
    """Dotted paths of the leaves of a JSON Schema; a map's keys are its users' own."""
    inner = schema.get("properties")
    if not inner:
        yield path
        return
    for name, part in inner.items():
        yield from keys_of(part, path + (name,))


def read_members(texts):
    """Names that code reads as members: x.name, x->name, &type::name."""
    found = set()
    for text in texts:
        found.update(re.findall(r"(?:\.|->|::)([a-z_][a-z0-9_]*)\b(?!\s*=[^=])", text))
    return found


class Promises(unittest.TestCase):
    def test_every_key_of_the_configuration_is_read(self):
        schema = json.loads((SOURCE / "configs/kernelmill.schema.json").read_text())
        keys = [path for path in keys_of(schema) if path and path[-1] != "$schema"]
        self.assertGreater(len(keys), 80, "the walk finds no keys")
        members = read_members(text for name, text in product() if not name.startswith(LOADERS))
        unread = [".".join(path) for path in keys if path[-1] not in members]
        self.assertEqual(unread, [], "no code reads these keys: make them true or take them away")

    def test_waits_without_end_have_a_deadline_of_their_own(self):
        found = {name for name, text in product() if re.search(r"\bcaf::infinite\b", text)}
        self.assertEqual(sorted(found), sorted(OWN_DEADLINES))


class Check(unittest.TestCase):
    """The check itself, on a few lines."""

    def test_leaves_of_a_schema_are_found(self):
        schema = {"properties": {"log": {"properties": {"level": {}, "format": {}}}, "seed": {}}}
        self.assertEqual(list(keys_of(schema)), [("log", "level"), ("log", "format"), ("seed",)])

    def test_what_is_only_set_is_not_read(self):
        self.assertEqual(read_members(["x.level = 3; if (y->seed == 1) z.of(&log::format);"]),
                         {"seed", "of", "format"})


if __name__ == "__main__":
    unittest.main()
