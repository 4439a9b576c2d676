"""What the tests of `kernelmill serve` share: where things lie, and kernels for one task."""

import os
import pathlib
import sys

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = os.path.join(os.environ["KERNELMILL_BIN_DIR"], "kernelmill")
TASKS = SOURCE / "configs" / "tasks"
sys.path.insert(0, str(SOURCE / "launch/learning/client"))

TASK = "native/row_sum"
SIGNATURE = 'extern "C" void solve(const float* x, float* y, int rows, int cols)'
GOOD = (
    SIGNATURE
    + """ {
  for (int r = 0; r < rows; ++r) {
    double s = 0;
    for (int c = 0; c < cols; ++c) s += x[(long)r * cols + c];
    y[r] = (float)s;
  }
}
"""
)
WRONG = SIGNATURE + " { for (int r = 0; r < rows; ++r) y[r] = 1; }\n"
BROKEN = SIGNATURE + " { nonsense }\n"
