#!/usr/bin/python3
"""A request between actors that CAF gives no deadline has one of its own, in a file that is named here."""

import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
FLOORS = ("messages", "storage", "retrieval", "gpu", "actors", "launch")

# CAF takes no deadline back, so these count their own (docs/decisions/0006).
OWN_DEADLINES = {
    "actors/cluster/work_queue.hpp": "leases expire",
    "actors/compiler/compiler.cpp": "the lease of the build expires",
    "actors/episode/asking.hpp": "an episode looks at its clock",
    "actors/episode/episode_waiting.cpp": "an episode looks at its clock",
    "actors/gather.cpp": "those who answer late are left out",
    "actors/monitor/monitor.cpp": "those who answer late are left out",
}


def without_end(texts):
    """Names of those that ask for an answer without end."""
    return sorted(name for name, text in texts if re.search(r"\bcaf::infinite\b", text))


class Deadlines(unittest.TestCase):
    def test_waits_without_end_have_a_deadline_of_their_own(self):
        texts = [
            (path.relative_to(SOURCE).as_posix(), path.read_text())
            for floor in FLOORS
            for path in (SOURCE / floor).rglob("*.[ch]pp")
        ]
        self.assertEqual(without_end(texts), sorted(OWN_DEADLINES))

    def test_the_check_sees_one(self):
        self.assertEqual(without_end([("a", "request(x, caf::infinite, y)"), ("b", "std::chrono::seconds{3}")]), ["a"])


if __name__ == "__main__":
    unittest.main()
