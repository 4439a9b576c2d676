#!/usr/bin/python3
"""The changelog: fragments keep the rule of changelog/README.md, `join` makes a section, errors name file and line."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "launch/tools/release/changelog.py"
PAGE = "# Changelog\n\nWords.\n\n## [0.2.0] 2026-11-29\n\n### Added\n\n- Old.\n"


def run(*words):
    return subprocess.run([sys.executable, "-B", PROGRAM, *words], text=True, capture_output=True)


class OfThisTree(unittest.TestCase):
    def test_fragments_keep_the_rule(self):
        done = run("check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_page_is_short_and_its_newest_section_is_this_version(self):
        text = (ROOT / "CHANGELOG.md").read_text()
        self.assertLessEqual(len(text.encode()), 6 * 1024)
        self.assertLessEqual(len((ROOT / "changelog/README.md").read_text().splitlines()), 7)
        version = re.search(r"project\(kernelmill VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertEqual(re.search(r"^## \[(.+?)\]", text, re.M)[1], version)
        client = (ROOT / "launch/learning/client/pyproject.toml").read_text()
        self.assertEqual(re.search(r'^version = "(.+)"$', client, re.M)[1], version)


class OfAnother(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder = self.root / "changelog/unreleased"
        self.folder.mkdir(parents=True)
        (self.folder / "README.md").write_text("Not a fragment.\n")
        self.page = self.root / "CHANGELOG.md"
        self.page.write_text(PAGE)

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def wrong(self, *words):
        done = run("--root", self.root, *(words or ["check"]))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return done.stderr

    def test_join_groups_the_fragments_and_removes_them(self):
        self.write("a.md", "fixed: a fault.\n")
        self.write("b.md", "added: `thing`,\nwhich does\nmuch.\n")
        self.write("c-2.md", "added: another thing.")
        done = run("--root", self.root, "join", "0.3.0", "2027-01-31")
        self.assertEqual(done.returncode, 0, done.stderr)
        section = (
            "## [0.3.0] 2027-01-31\n\n### Added\n\n- `thing`,\n  which does\n  much.\n- Another thing.\n\n"
            "### Fixed\n\n- A fault.\n\n"
        )
        self.assertEqual(self.page.read_text(), PAGE.replace("## [0.2.0]", section + "## [0.2.0]"))
        self.assertEqual([x.name for x in self.folder.iterdir()], ["README.md"])

    def test_join_begins_a_page(self):
        self.page.write_text("# Changelog\n")
        self.write("a.md", "removed: a thing.\n")
        self.assertEqual(run("--root", self.root, "join", "0.1.0", "2026-01-31").returncode, 0)
        self.assertEqual(self.page.read_text(), "# Changelog\n\n## [0.1.0] 2026-01-31\n\n### Removed\n\n- A thing.\n")

    def test_errors_name_file_and_line(self):
        for text, line, words in (
            ("", 1, "the first line must be"),
            ("improved: a thing.\n", 1, "the first line must be"),
            ("added:\n", 1, "the first line must be"),
            ("added: " + "x" * 114 + "\n", 1, "121 characters"),
            ("added: a thing,\n" + "x" * 121 + "\n", 2, "121 characters"),
            ("added: a thing.\n\nMore.\n", 2, "the line is empty"),
            ("added: a thing.\nfixed: a fault.\n", 2, "a second entry"),
            ("added: a\nb\nc\nd\n", 4, "4 lines"),
        ):
            self.write("x.md", text)
            self.assertIn(f"changelog/unreleased/x.md:{line}: {words}", self.wrong(), repr(text))
        (self.folder / "x.md").write_bytes(b"added: \xff\n")
        self.assertIn("changelog/unreleased/x.md:1: the file is not UTF-8", self.wrong())
        self.write("A Thing.txt", "added: a thing.\n")
        self.assertIn("changelog/unreleased/A Thing.txt:1: the name must be", self.wrong())

    def test_join_changes_nothing_where_something_is_wrong(self):
        self.assertIn("changelog/unreleased has no fragments", self.wrong("join", "0.3.0", "2027-01-31"))
        self.write("a.md", "added: a thing.\n")
        self.assertIn("CHANGELOG.md:5: there is a section 0.2.0 already", self.wrong("join", "0.2.0", "2027-01-31"))
        self.assertIn("VERSION must be", self.wrong("join", "0.3", "2027-01-31"))
        self.assertIn("DATE must be", self.wrong("join", "0.3.0", "31.1.2027"))
        self.write("b.md", "x\n")
        self.assertIn("changelog/unreleased/b.md:1:", self.wrong("join", "0.3.0", "2027-01-31"))
        self.assertEqual(self.page.read_text(), PAGE)
        self.assertTrue((self.folder / "a.md").exists())


if __name__ == "__main__":
    unittest.main()
