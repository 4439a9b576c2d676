#!/usr/bin/python3
"""Exports as Parquet, written by the Python client and read by `datasets` and pyarrow."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import support

support.go_on_with_trainers_python()
sys.path.insert(0, str(support.SOURCE / "launch/learning/client"))

FORMS = ("sft", "trajectories", "preference", "rl")


def folder_of(form: str, where: pathlib.Path, packed: bool) -> pathlib.Path:
    """An export with the golden rows, without a run."""
    (where / "data").mkdir(parents=True)
    rows = (support.GOLDEN / f"{form}.jsonl").read_bytes()
    path = where / "data/train.jsonl"
    path.write_bytes(rows)
    if packed:
        subprocess.run(["zstd", "-q", "--rm", str(path)], check=True, timeout=60)
    (where / "README.md").write_text("data_files: data/train.jsonl" + (".zst" if packed else "") + "\n")
    (where / "PROVENANCE.json").write_text(json.dumps({"files": [{"path": "data/train.jsonl"}]}))
    return where


@unittest.skipUnless(support.has("pyarrow"), support.missing("pyarrow"))
class Parquet(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_every_row_comes_back(self):
        import pyarrow.parquet
        from kernelmill.parquet import to_parquet

        for form in FORMS:
            for packed in (False, True):
                source = folder_of(form, self.folder / f"{form}-{packed}", packed)
                target = self.folder / f"{form}-{packed}-parquet"
                counts = to_parquet(source, target, rows_per_group=1)
                wanted = support.golden_rows(form)
                self.assertEqual(counts, {"train": len(wanted)})
                file = pyarrow.parquet.ParquetFile(target / "data/train.parquet")
                self.assertEqual(file.num_row_groups, len(wanted))
                for want, got in zip(wanted, file.read().to_pylist()):
                    for key, value in want.items():
                        self.assert_same(value, got[key])

    def assert_same(self, want, got):
        """Parquet has a place for every key of a record: one that was not there is null."""
        if isinstance(want, dict):
            for key in {*want, *(got or {})}:
                self.assert_same(want.get(key), got[key])
        elif isinstance(want, list):
            self.assertEqual(len(want), len(got))
            for a, b in zip(want, got):
                self.assert_same(a, b)
        else:
            self.assertEqual(want, got)

    def test_provenance_and_card_name_the_new_files(self):
        from kernelmill.parquet import main

        source = folder_of("sft", self.folder / "sft", True)
        self.assertEqual(main([str(source), "--out", str(self.folder / "out")]), 0)
        provenance = json.loads((self.folder / "out/PROVENANCE.json").read_text())
        self.assertEqual(provenance["files"][0]["path"], "data/train.parquet")
        self.assertEqual((self.folder / "out/README.md").read_text(), "data_files: data/train.parquet\n")
        self.assertEqual(main([str(source), "--out", str(self.folder / "out")]), 1)


if __name__ == "__main__":
    unittest.main()
