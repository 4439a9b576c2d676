#!/usr/bin/python3
"""launch/tools/packaging/wheel.py: `pip install` of its one file gives the command,
the client and all that they need."""

import base64
import csv
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"]).parent
WHEEL = SOURCE / "launch/tools/packaging/wheel.py"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "SOURCE_DATE_EPOCH": "1700000000"}


def run(*words, check=True, **more):
    """A command, without the environment of this one."""
    done = subprocess.run(
        [str(x) for x in words],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, **more.pop("env", {})},
        timeout=300,
        **more,
    )
    if check and done.returncode:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done


def make_wheel(stage, out, *options):
    """The path of the wheel of an unpacked tarball."""
    return pathlib.Path(run(sys.executable, "-B", WHEEL, stage, "--out", out, "--level", "1", *options).stdout.strip())


class Made(unittest.TestCase):
    """A small package: what a wheel does with it."""

    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)
        self.stage = self.folder / "kernelmill-x"
        for name in (
            "bin",
            "lib/kernelmill",
            "lib/systemd/system",
            "share/kernelmill/client",
            "share/kernelmill/configs",
        ):
            (self.stage / name).mkdir(parents=True)
        self.program("kernelmill 0.2.0 (abc)")
        library = self.stage / "lib/kernelmill/libx-r1.so"
        run("g++", "-shared", "-x", "c++", "-o", library, "-Wl,-soname,libx.so.1", "-", input="int x() { return 1; }")
        (self.stage / "lib/kernelmill/libx.so.1").symlink_to("libx-r1.so")
        (self.stage / "lib/kernelmill/libx.so.1-other-name").symlink_to("libx.so.1")
        (self.stage / "lib/systemd/system/x.service").write_text("")
        (self.stage / "share/kernelmill/client/README.md").write_text("")
        (self.stage / "share/kernelmill/configs/quickstart.json").write_text("{}")

    def program(self, says):
        path = self.stage / "bin/kernelmill"
        path.write_text(f"#!/bin/sh\necho '{says}'\n")
        path.chmod(0o755)

    def test_the_record_holds_the_hash_of_every_file_and_there_is_no_link(self):
        with zipfile.ZipFile(make_wheel(self.stage, self.folder / "out")) as archive:
            names = archive.namelist()
            rows = list(csv.reader(archive.read("kernelmill-0.2.0.dist-info/RECORD").decode().splitlines()))
            self.assertEqual([x[0] for x in rows], names)
            for name, digest, size in rows[:-1]:
                data = archive.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, int(size)), (f"sha256={expected}", len(data)), name)
            modes = {x.filename: x.external_attr >> 16 for x in archive.infolist()}
        inside = {x.removeprefix("kernelmill/installation/") for x in names if "/installation/" in x}
        self.assertEqual(
            inside, {"bin/kernelmill", "lib/kernelmill/libx.so.1", "share/kernelmill/configs/quickstart.json"}
        )
        self.assertEqual(modes["kernelmill/installation/bin/kernelmill"], 0o100755)
        self.assertEqual(modes["kernelmill/client.py"], 0o100644)
        self.assertEqual({x & 0o170000 for x in modes.values()}, {0o100000})

    def test_the_same_package_gives_the_same_bytes(self):
        first = make_wheel(self.stage, self.folder / "one").read_bytes()
        run("tar", "-czf", self.folder / "x.tar.gz", "-C", self.folder, "kernelmill-x")
        os.utime(self.stage / "bin/kernelmill", (1, 1))
        self.assertEqual(make_wheel(self.stage, self.folder / "two").read_bytes(), first)
        self.assertEqual(make_wheel(self.folder / "x.tar.gz", self.folder / "three").read_bytes(), first)

    def test_what_cannot_be_a_wheel_is_said(self):
        self.program("kernelmill 0.0.9 (abc)")
        done = run(sys.executable, "-B", WHEEL, self.stage, "--out", self.folder, check=False)
        self.assertIn("pyproject.toml says 0.2.0, the program 'kernelmill 0.0.9 (abc)'", done.stderr)
        (self.stage / "lib/kernelmill/liby.so").symlink_to("/nowhere/liby.so")
        self.program("kernelmill 0.2.0 (abc)")
        done = run(sys.executable, "-B", WHEEL, self.stage, "--out", self.folder, check=False)
        self.assertIn("liby.so leads to nothing that is packed", done.stderr)
        done = run(sys.executable, "-B", WHEEL, self.stage / "share", "--out", self.folder, check=False)
        self.assertIn("it has no bin/kernelmill", done.stderr)


class Installed(unittest.TestCase):
    """The wheel of this build, installed in an environment of its own."""

    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(made.cleanup)
        cls.folder = pathlib.Path(made.name)
        cls.venv = cls.folder / "venv"
        if run(sys.executable, "-m", "venv", cls.venv, check=False).returncode:
            raise unittest.SkipTest("python3-venv is not installed")
        run("cmake", "--install", BUILD, "--strip", "--component", "programs", "--prefix", cls.folder / "stage")
        run(
            cls.venv / "bin/pip",
            "install",
            "--no-index",
            "--disable-pip-version-check",
            make_wheel(cls.folder / "stage", cls.folder),
        )

    def here(self, *words, **more):
        """A command of the environment, in a folder that has nothing of ours."""
        return run(self.venv / "bin" / words[0], *words[1:], cwd=self.folder, env={"HOME": str(self.folder)}, **more)

    def test_the_command_runs_the_quickstart(self):
        self.assertIn("kernelmill 0.2.0", self.here("kernelmill", "version").stdout)
        said = self.here(
            "kernelmill",
            "run",
            "quickstart",
            'tasks.ids=["native/row_sum"]',
            "tasks.group_size=1",
            "tasks.max_turns=2",
            "evaluation.timing.half_width=0.1",
            "profile.enabled=false",
            "run.name=first",
        )
        self.assertIn("finished: 1 group, 1 episode, 2 turns", said.stdout + said.stderr)

    def test_the_client_starts_the_program_that_it_carries(self):
        said = self.here("python", "-c", "import kernelmill\nwith kernelmill.serve('cpu') as x: print(len(x.tasks()))")
        self.assertGreaterEqual(int(said.stdout), 16)
        self.assertIn(
            "/venv/", self.here("python", "-c", "from kernelmill.program import *; print(find_program())").stdout
        )

    def test_the_command_ends_as_the_program_does(self):
        done = self.here("kernelmill", "no-such-command", check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(
            self.here("python", "-m", "kernelmill", "version").stdout, self.here("kernelmill", "version").stdout
        )


class Pure(unittest.TestCase):
    """The client without a program."""

    def test_it_says_that_it_has_none_and_takes_no_script_for_one(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "kernelmill")
            script.write_text('#!/bin/sh\nexec "$0"\n')
            script.chmod(0o755)
            done = run(
                sys.executable,
                "-B",
                "-m",
                "kernelmill",
                "version",
                check=False,
                env={"PYTHONPATH": str(SOURCE / "launch/learning/client"), "PATH": folder},
            )
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("failed to find the program kernelmill (install the wheel", done.stderr)


if __name__ == "__main__":
    unittest.main()
