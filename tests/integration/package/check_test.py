#!/usr/bin/python3
"""launch/tools/packaging/check.py takes what is hardened and names what is not, rule by rule."""

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
CHECK = SOURCE / "launch/tools/packaging/check.py"
PROGRAM = r"""
#include <cstdio>
#include <cstring>
int main(int count, char** words) {
  char room[16];
  std::strcpy(room, words[count - 1]);
  return std::puts(room) < 0;
}
"""
HARD = [
    "-O2",
    "-fstack-protector-strong",
    "-U_FORTIFY_SOURCE",
    "-D_FORTIFY_SOURCE=2",
    "-fPIE",
    "-pie",
    "-Wl,-z,relro,-z,now,-z,noexecstack",
]


class Check(unittest.TestCase):
    """Small programs, each without one of the flags."""

    def build(self, name, flags, program=PROGRAM):
        """A package of one program."""
        folder = self.new_folder()
        path = folder / "bin" / name
        path.parent.mkdir()
        subprocess.run(["g++", "-x", "c++", "-", "-o", path, *flags], input=program, text=True, check=True)
        return folder

    def new_folder(self):
        """That goes with the test."""
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        return pathlib.Path(made.name)

    def check(self, package):
        """Exit code and text."""
        done = subprocess.run([sys.executable, "-B", CHECK, package], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def broken_without(self, drop, add, words, name="kernelmill-x"):
        """A program built so is refused, and the text says why."""
        code, text = self.check(self.build(name, [x for x in HARD if x not in drop] + add))
        self.assertEqual(code, 1, text)
        self.assertIn(words, text)

    def test_what_is_hardened_is_taken_as_a_folder_and_as_a_tarball(self):
        folder = self.build("kernelmill", HARD + ["-Wl,-rpath,$ORIGIN/../lib/kernelmill"])
        self.assertEqual(self.check(folder)[0], 0, self.check(folder)[1])
        packed = folder / "x.tar.gz"
        with tarfile.open(packed, "w:gz") as tar:
            tar.add(folder / "bin", "kernelmill/bin")
        self.assertEqual(self.check(packed)[0], 0)

    def test_each_missing_flag_is_named(self):
        self.broken_without({"-fPIE", "-pie"}, ["-no-pie", "-fno-pie"], "not position-independent")
        self.broken_without({HARD[-1]}, ["-Wl,-z,norelro"], "no RELRO")
        self.broken_without({HARD[-1]}, ["-Wl,-z,relro,-z,lazy"], "RELRO is partial")
        self.broken_without({HARD[-1]}, ["-Wl,-z,relro,-z,now,-z,execstack"], "stack can be executed")
        self.broken_without({"-fstack-protector-strong"}, ["-fno-stack-protector"], "no stack protector")
        self.broken_without({"-D_FORTIFY_SOURCE=2"}, [], "no fortified call")

    def test_a_program_that_only_copies_strings_may_lack_fortified_calls(self):
        program = (
            "#include <string>\nint main(int count, char** words) { char room[64]; room[count % 64] = words[0][0]; "
            "return std::string(words[0]).append(room, 1).append(words[count - 1]).size() > 1000; }\n"
        )
        code, text = self.check(self.build("kernelmill-x", [*HARD, "-fstack-protector-all"], program))
        self.assertEqual(code, 0, text)

    def test_folders_of_libraries_lie_in_the_package(self):
        for path in ("/home/builder/lib", "$ORIGIN/../../lib", "/tmp", "."):
            self.broken_without(set(), [f"-Wl,-rpath,{path}"], "looks for libraries in")

    def test_libraries_of_the_distribution_need_less_but_not_nothing(self):
        code, text = self.check(self.build("bwrap", [x for x in HARD if x != HARD[-1]] + ["-Wl,-z,relro,-z,lazy"]))
        self.assertEqual(code, 0, text)
        self.broken_without({HARD[-1]}, ["-Wl,-z,relro,-z,execstack"], "stack can be executed", "bwrap")

    def test_a_package_without_programs_is_none(self):
        self.assertEqual(self.check(self.new_folder())[0], 1)


if __name__ == "__main__":
    unittest.main()
