#!/usr/bin/python3
"""Checks of all pages that run none of their commands: links and files exist, the README stays short, decision records
have one form, and the runner of commands finds errors."""

import os
import pathlib
import re
import tempfile
import unittest

import run_blocks

SOURCE = pathlib.Path(os.environ.get("KERNELMILL_SOURCE_DIR", pathlib.Path(__file__).parents[3]))
PAGES = [*SOURCE.glob("*.md"), *sorted((SOURCE / "docs").rglob("*.md"))]
HISTORY = SOURCE / "docs/history"  # kept as it was written


def anchors(page):
    """What headings are called in links, as GitHub makes it."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", text, re.M)
    }


class Pages(unittest.TestCase):
    def test_links_lead_somewhere(self):
        seen = 0
        for page in PAGES:
            text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                seen += 1
                path, _, anchor = target.partition("#")
                file = (page.parent / path).resolve() if path else page
                self.assertTrue(file.exists(), f"{page}: {target}")
                if anchor and file.suffix == ".md" and page.parent != HISTORY:
                    self.assertIn(anchor, anchors(file), f"{page}: {target}")
        self.assertGreater(seen, 50)

    def test_files_that_are_named_exist(self):
        folders = "actors|configs|docs|gpu|launch|messages|retrieval|storage|tests"
        seen = 0
        for page in PAGES:
            if page.name == "CHANGELOG.md" or page.parent == HISTORY:
                continue  # they tell of what was
            for path in re.findall(rf"`((?:{folders})/[\w./*-]+)`", page.read_text()):
                seen += 1
                if "my_" not in path:
                    self.assertTrue(any(SOURCE.glob(path)), f"{page}: {path}")
        self.assertGreater(seen, 50)

    def test_every_page_is_listed(self):
        listed = "".join((SOURCE / "docs" / x / "README.md").read_text() for x in (".", "decisions", "history"))
        for page in sorted((SOURCE / "docs").rglob("*.md")):
            if page.name != "README.md" and "examples" not in page.parts:
                self.assertIn(f"{page.name})", listed, page)

    def test_readme_stays_short(self):
        self.assertLess(len((SOURCE / "README.md").read_text().split()), 1000)

    def test_figures_stay_a_page(self):
        self.assertLessEqual((SOURCE / "docs/figures.md").stat().st_size, 14 * 1024)

    def test_decisions_have_one_form(self):
        for page in sorted((SOURCE / "docs/decisions").glob("[0-9]*.md")):
            text = page.read_text()
            self.assertRegex(text, rf"\A# {page.name[:4]} ", page)
            self.assertEqual(
                re.findall(r"^## (.*)$", text, re.M), ["Status", "Context", "Decision", "Consequences"], page
            )
            self.assertRegex(text, r"\n## Status\n\n(Accepted|Replaced)", page)


class Runner(unittest.TestCase):
    def wrong(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as page:
            page.write(text)
            page.flush()
            return run_blocks.run_page(pathlib.Path(page.name))

    def test_takes_a_page_whose_commands_do_what_it_says(self):
        self.assertEqual(
            self.wrong(
                "```sh\nx=1\necho took 12 ms; echo b\n```\n```text\ntook 7.5 us\n```\n"
                "```sh\necho $x > f; cat f\n```\n```bash\nfalse\n```\n"
            ),
            [],
        )

    def test_finds_a_command_that_fails_and_a_line_that_is_not_printed(self):
        self.assertIn("ended with 3", self.wrong("```sh\nexit 3\n```\n")[0])
        self.assertIn("says that it prints", self.wrong("```sh\necho a\n```\n```text\nb\n```\n")[0])
        self.assertIn("says that it prints", self.wrong("```sh\necho a; echo b\n```\n```text\nb\na\n```\n")[0])
        self.assertIn("no block", self.wrong("words\n")[0])


if __name__ == "__main__":
    unittest.main()
