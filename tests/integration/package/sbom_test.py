#!/usr/bin/python3
"""launch/tools/packaging/sbom.py lists every file with its hashes and every library with its package, gives the
same bytes twice, and sees what was changed."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
SBOM = SOURCE / "launch/tools/packaging/sbom.py"
LIST = "share/doc/kernelmill/sbom.spdx.json"


class Sbom(unittest.TestCase):
    """A small package with one of Debian's libraries."""

    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.root = pathlib.Path(made.name) / "package"
        for name, text in (
            ("bin/kernelmill", "\x7fELF"),
            ("share/doc/kernelmill/LICENSE", "Apache License"),
            ("share/a file.txt", "x"),
            ("share/a-file.txt", "y"),
        ):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        libraries = self.root / "lib/kernelmill"
        libraries.mkdir(parents=True)
        library = next(pathlib.Path("/usr/lib/x86_64-linux-gnu").glob("libzstd.so.1"))
        shutil.copy(library.resolve(), libraries / library.resolve().name)
        (libraries / "libzstd.so.1").symlink_to(library.resolve().name)
        self.write()

    def run_sbom(self, *words):
        """Exit code and what it prints."""
        done = subprocess.run(
            [sys.executable, "-B", SBOM, self.root, *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        )
        return done.returncode, done.stdout + done.stderr

    def write(self):
        """Writes the list into the package."""
        code, text = self.run_sbom("--version", "1.2.3", "--out", str(self.root / LIST))
        self.assertEqual(code, 0, text)
        return json.loads((self.root / LIST).read_text())

    def test_every_file_is_listed_with_its_hash_and_an_identifier_of_its_own(self):
        document = self.write()
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        self.assertEqual(document["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        names = {x["fileName"] for x in document["files"]}
        there = {
            "./" + x.relative_to(self.root).as_posix()
            for x in self.root.rglob("*")
            if x.is_file() and not x.is_symlink()
        }
        self.assertEqual(names, there - {"./" + LIST})
        self.assertEqual(len({x["SPDXID"] for x in document["files"]}), len(names))
        for one in document["files"]:
            expected = hashlib.sha256((self.root / one["fileName"]).read_bytes()).hexdigest()
            self.assertIn({"algorithm": "SHA256", "checksumValue": expected}, one["checksums"])

    def test_a_bundled_library_has_its_package_version_and_licences(self):
        packages = {x["name"]: x for x in self.write()["packages"]}
        version = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", "libzstd1"], capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual(packages["libzstd1"]["versionInfo"], version)
        self.assertIn("BSD-3-Clause", packages["libzstd1"]["licenseDeclared"])
        self.assertEqual(packages["kernelmill"]["licenseDeclared"], "Apache-2.0")

    def test_what_lies_in_the_tree_says_its_own_version_and_licence(self):
        listed = {x["name"]: x for x in self.write()["packages"]}["highlight.js"]
        first = (SOURCE / "launch/server/page/assets/vendor/highlight.js").read_text()[:400]
        self.assertIn(f"highlight.js {listed['versionInfo']},", first)
        self.assertIn(listed["licenseDeclared"], first)

    def test_what_is_named_is_there(self):
        document = self.write()
        known = {x["SPDXID"] for kind in ("packages", "files") for x in document[kind]} | {"SPDXRef-DOCUMENT"}
        for one in document["relationships"]:
            self.assertIn(one["spdxElementId"], known)
            self.assertIn(one["relatedSpdxElement"], known)

    def test_the_same_folder_gives_the_same_bytes(self):
        before = (self.root / LIST).read_bytes()
        self.write()
        self.assertEqual((self.root / LIST).read_bytes(), before)

    def test_a_changed_a_missing_and_an_added_file_are_seen(self):
        self.assertEqual(self.run_sbom("--verify")[0], 0)
        (self.root / "share/a file.txt").write_text("z")
        (self.root / "share/a-file.txt").unlink()
        (self.root / "share/new").write_text("")
        code, text = self.run_sbom("--verify")
        self.assertEqual(code, 1)
        for words in (
            "a file.txt has another SHA256",
            "a-file.txt is listed and not there",
            "new is there and not listed",
        ):
            self.assertIn(words, text)

    def test_a_library_of_no_package_is_refused(self):
        (self.root / "lib/kernelmill/libnobody.so.7").write_text("\x7fELF")
        code, text = self.run_sbom("--version", "1", "--out", str(self.root / LIST))
        self.assertNotEqual(code, 0)
        self.assertIn("libnobody.so.7", text)


if __name__ == "__main__":
    unittest.main()
