#!/usr/bin/python3
"""A corpus in Parquet: the program names the command that turns it into JSON lines, and reads what that writes."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import support

support.go_on_with_trainers_python()
sys.path.insert(0, str(support.SOURCE / "launch/learning/client"))

RELU = """__global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
"""
SUM = """__global__ void sum(const float* x, float* y, int n) {
  __shared__ float part[256];
  float s = 0;
  for (int i = threadIdx.x; i < n; i += 256) s += x[blockIdx.x * n + i];
  part[threadIdx.x] = s;
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
"""


def sakana(number, **more):
    return {
        "Op_Name": f"{number}_ReLU",
        "Level_ID": 1,
        "Task_ID": number,
        "Kernel_Name": f"relu_{number}",
        "CUDA_Speedup_Native": 1.5,
        "PyTorch_Code_Module": "import torch\ndef forward(x):\n    return torch.relu(x)\n",
        "CUDA_Code": RELU,
        "Correct": True,
        "NCU_Profile": None,
        **more,
    }


@unittest.skipUnless(support.has("pyarrow"), support.missing("pyarrow"))
class JsonLines(unittest.TestCase):
    def setUp(self):
        import pyarrow
        import pyarrow.parquet

        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        # Tasks of the split "train".
        rows = [sakana(1), sakana(3, CUDA_Code=SUM, CUDA_Speedup_Native=float("nan")), sakana(5, Correct=False)]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), self.folder / "level_1.parquet", row_group_size=2)

    def build(self, source):
        return subprocess.run(
            [support.PROGRAM, "index", "build", str(self.folder / "index"), "--from", source, "--json"],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def test_the_command_of_the_error_makes_a_file_that_is_read(self):
        refused = self.build(f"sakana={self.folder}/level_1.parquet")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        error = json.loads(refused.stderr)["error"]
        self.assertEqual(error["category"], "malformed_corpus")
        command = re.search(r"python -m (kernelmill\.json_lines .*)", error["hint"]).group(1).split()
        subprocess.run(
            [sys.executable, "-m", *command],
            check=True,
            timeout=100,
            env={"PYTHONPATH": str(support.SOURCE / "launch/learning/client")},
        )
        built = self.build(f"sakana={self.folder}/level_1.jsonl")
        self.assertEqual(built.returncode, 0, built.stderr)
        source = json.loads(built.stdout)["sources"][0]
        self.assertEqual((source["rows"], source["kept"]), (3, 2))

    def test_columns_are_chosen_and_a_wrong_name_leaves_no_file(self):
        from kernelmill.json_lines import main, to_json_lines

        out = self.folder / "rows.jsonl"
        files = [self.folder / "level_1.parquet"] * 2
        self.assertEqual(to_json_lines(files, out, ["Task_ID", "CUDA_Speedup_Native"], rows_at_once=1), 6)
        rows = [json.loads(x) for x in out.read_text().splitlines()]
        self.assertEqual(
            rows[:2], [{"Task_ID": 1, "CUDA_Speedup_Native": 1.5}, {"Task_ID": 3, "CUDA_Speedup_Native": None}]
        )
        self.assertEqual(main([str(files[0]), "--out", str(self.folder / "none.jsonl"), "--columns", "Nothing"]), 1)
        self.assertEqual(sorted(x.name for x in self.folder.iterdir()), ["level_1.parquet", "rows.jsonl"])


if __name__ == "__main__":
    unittest.main()
