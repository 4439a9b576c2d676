#!/usr/bin/python3
"""The keys of `kernelmill top`, pressed on a pseudo-terminal."""

import contextlib
import json
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "page"))
import serving  # noqa: E402
from serving import PROGRAM  # noqa: E402

WIDTH, HEIGHT = 132, 30
UP, DOWN, ESCAPE, ENTER, BACKSPACE = b"\x1bA", b"\x1bB", b"\x1b", b"\r", b"\x7f"


class Screen:
    """A VT52: what ncurses says to it is few and simple sequences."""

    def __init__(self):
        self.cells = [[" "] * WIDTH for _ in range(HEIGHT)]
        self.y = self.x = 0
        self.rest = b""

    def feed(self, data):
        data = self.rest + data
        at = 0
        while at < len(data):
            used = self.one(data[at : at + 4])
            if used == 0:
                break
            at += used
        self.rest = data[at:]

    def one(self, data):
        if data[:1] != b"\x1b":
            self.put(data[0])
            return 1
        if len(data) < 2 or (data[1:2] == b"Y" and len(data) < 4):
            return 0
        command = data[1:2]
        if command == b"Y":
            self.y, self.x = data[2] - 32, data[3] - 32
            return 4
        if command == b"H":
            self.y = self.x = 0
        elif command == b"C":
            self.x += 1
        elif command in (b"A", b"I"):
            self.y = max(0, self.y - 1)
        elif command == b"B":
            self.y += 1
        elif command == b"D":
            self.x -= 1
        elif command in (b"J", b"K"):
            self.cells[self.y][self.x :] = " " * (WIDTH - self.x)
            if command == b"J":
                self.cells[self.y + 1 :] = [[" "] * WIDTH for _ in range(HEIGHT - self.y - 1)]
        return 2

    def put(self, byte):
        if byte == 13:
            self.x = 0
        elif byte == 8:
            self.x -= 1
        elif byte == 10:
            self.y += 1
        elif byte == 9:
            self.x = (self.x // 8 + 1) * 8
        elif byte >= 32:
            self.cells[min(self.y, HEIGHT - 1)][min(self.x, WIDTH - 1)] = chr(byte)
            self.x += 1

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.cells)


class Top:
    """A `top` in progress."""

    def __init__(self, home):
        self.screen = Screen()
        self.number, self.end = pty.fork()
        if self.number == 0:
            os.chdir(home)
            names = {"TERM": "vt52", "LINES": str(HEIGHT), "COLUMNS": str(WIDTH)}
            os.execve(PROGRAM, [PROGRAM, "top"], {**os.environ, **names})

    def until(self, holds, what):
        """Reads the screen until it `holds`; the test's own deadline is the only one."""
        while not holds(self.screen.text()):
            if select.select([self.end], [], [], 60)[0]:
                try:
                    self.screen.feed(os.read(self.end, 65536))
                    continue
                except OSError:
                    pass
            raise AssertionError(f"{what} does not come:\n{self.screen.text()}")
        return self.screen.text()

    def press(self, keys, *wanted, without=()):
        os.write(self.end, keys)
        return self.until(
            lambda text: all(x in text for x in wanted) and not any(x in text for x in without), wanted or without
        )

    def leave(self):
        os.write(self.end, b"qq")  # out of an episode, too
        with contextlib.suppress(OSError):
            while os.read(self.end, 65536):
                pass
        return os.waitstatus_to_exitcode(os.waitpid(self.number, 0)[1])


class Keys(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = home.name

    def begin(self):
        """A run of four episodes: the first turn of each comes at once, the second begins and never ends."""
        script = serving.write_script(self.home, serving.replies(serving.BROKEN, "late"))
        said = json.loads(script.read_text())
        said["faults"] = [{"turn": 1, "kind": "stall", "seconds": 3600}]
        script.write_text(json.dumps(said))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = serving.run_arguments("runs/live", script, 4, 2)
        run = subprocess.Popen(command, cwd=self.home, **quiet)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        while True:
            seen = subprocess.run([PROGRAM, "ps", "--json"], cwd=self.home, capture_output=True, check=True)
            episodes = json.loads(seen.stdout)["episodes"]
            if len(episodes) == 4 and all(x["turn"] == 1 for x in episodes):
                return
            self.assertIsNone(run.poll())

    def test_keys(self):
        self.begin()
        top = Top(self.home)
        text = top.press(b"", "4 live episodes", "g0.e3", "? help")
        self.assertRegex(text, r"policy +4 in flight of \d+, 0 queued; answers in ")

        top.press(b"?", "Enter, f     follows", without=("g0.e0",))
        top.press(b" ", "g0.e0", without=("Enter, f ",))

        # A word alone, a condition, a mistake that is told, and all again.
        top.press(b"/", "filter (Enter applies")
        top.press(b"e2", ": e2_")
        top.press(BACKSPACE + b"3" + ENTER, "filter: e3", "g0.e3", without=("g0.e2",))
        top.press(b"/id=g0.e1 or id=g0.e2" + ENTER, "g0.e1", "g0.e2", without=("g0.e3",))
        top.press(b"/colour=1" + ENTER, "'colour'")
        top.press(b"k", "filter: id=g0.e1", "g0.e1", without=("'colour'", "g0.e3"))
        top.press(b"/" + ENTER, "g0.e0", "g0.e3", without=("filter:",))
        top.press(b"/nothing" + ESCAPE, "g0.e0", without=("filter",))

        top.press(b"s", "sorted by -age_seconds", "g0.e0")
        top.press(b"s", "sorted by state", "g0.e0")
        top.press(4 * b"s", "g0.e0", without=("sorted by",))

        # The rows are followed and left one after the other; which stands first depends on the run.
        top.press(b"/id=g0.e1 or id=g0.e3" + ENTER, "g0.e3", without=("g0.e2",))
        followed = []
        for keys, back in ((ENTER, b"q"), (DOWN + DOWN + b"f", ESCAPE), (UP + ENTER, ENTER)):
            text = top.press(keys, ": turns as they are committed", ".t0  compile_error")
            followed.append(re.match(r"live/(g0\.e\d): ", text).group(1))
            top.press(back, "4 live episodes", without=("turns as they",))
        self.assertEqual(set(followed), {"g0.e1", "g0.e3"})
        self.assertEqual(followed[0], followed[2])
        top.press(b" ", "PAUSED")
        top.press(b" ", "4 live episodes", without=("PAUSED",))
        self.assertEqual(top.leave(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
