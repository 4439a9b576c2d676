#!/usr/bin/python3
"""The code that times candidates stays small: its lines and its numbers have a limit, and most numbers lie in one file
with their reasons. What times them is listed here by path; a path that is gone must leave the list."""

import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
TIMING = """
gpu/candidate/gpu_batch.cpp gpu/candidate/gpu_batch.hpp
gpu/referee/batch_record.cpp gpu/referee/batch_record.hpp
gpu/referee/device/batch_calibration.cpp gpu/referee/device/batch_timing.cpp gpu/referee/device/batch_timing.hpp
gpu/referee/device/batches.cpp gpu/referee/device/batches.hpp
gpu/referee/disturbance.cpp gpu/referee/disturbance.hpp
gpu/referee/host_batches.cpp gpu/referee/host_batches.hpp gpu/referee/host_timing.cpp gpu/referee/timing_run.cpp
gpu/torch/kernelmill_torch/batches.py gpu/torch/kernelmill_torch/flushes.py
gpu/torch/native/batch.cpp
gpu/torch/torch_batches.cpp gpu/torch/torch_batches.hpp
""".split()
MOST_LINES, MOST_NUMBERS = 3700, 80
NUMBER_IN_CPP = re.compile(
    r"^\s*(?:static |inline )*constexpr (?!const char)[\w:<>\[\] ]+?[ &]\w+(?:\[\])?\s*(?:=\s*[^;]*?\d|\{)", re.M
)
NUMBER_IN_PYTHON = re.compile(r"^([A-Z][A-Z_0-9]*(?:, [A-Z][A-Z_0-9]*)*) = .*\d", re.M)


def files():
    return [*(ROOT / x for x in TIMING), *sorted((ROOT / "gpu" / "timing").glob("*.[ch]pp"))]


def numbers_of(path):
    text = path.read_text()
    if path.suffix == ".py":
        return sum(len(found.group(1).split(",")) for found in NUMBER_IN_PYTHON.finditer(text))
    return len(NUMBER_IN_CPP.findall(text))


class TimingSize(unittest.TestCase):
    def test_the_list_names_files_that_are_there(self):
        self.assertEqual([x for x in TIMING if not (ROOT / x).is_file()], [])

    def test_it_has_few_lines(self):
        lines = {x: len(x.read_text().splitlines()) for x in files()}
        self.assertLessEqual(sum(lines.values()), MOST_LINES, lines)

    def test_it_has_few_numbers_and_most_lie_in_one_file(self):
        numbers = {x.relative_to(ROOT).as_posix(): numbers_of(x) for x in files()}
        self.assertLessEqual(sum(numbers.values()), MOST_NUMBERS, numbers)
        self.assertGreater(numbers["gpu/timing/thresholds.hpp"], sum(numbers.values()) / 2, numbers)


if __name__ == "__main__":
    unittest.main()
