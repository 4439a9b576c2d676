"""The answers, baselines and references of the same tasks for an NVIDIA GPU."""

from typing import Any, Dict, List, Tuple

SOLVE = '\nextern "C" void solve(const float* x, float* y, int rows, int cols) {\n'
KERNEL = "__global__ void run(const float* x, float* y, int rows, int cols) {\n"
SIZES: Dict[str, List[int]] = {"turned": [2, 4, 8, 16, 32]}
KINDS: Dict[str, List[str]] = {
    "turned": ["plain", "order", "parts", "parts", "parts", "no pad", "no tail"],
    "col_sum": ["order", "parts", "parts", "parts", "split", "split", "no tail"],
    "": ["order", "warp", "parts", "parts", "parts", "no tail"],
}


def kinds(family: str) -> List[str]:
    return KINDS.get(family, KINDS[""])


def sizes(family: str) -> List[int]:
    return SIZES.get(family, [32, 64, 128, 256, 512, 1024])


def head(f: str) -> str:
    return (
        "#include <algorithm>\n#include <cmath>\n\n__device__ float f(float v) { return "
        + f.replace("std::", "")
        + "; }\n\n"
    )


def fold(family: str, to: str, value: str) -> str:
    return f"{to} = max({to}, {value});" if family == "row_max" else f"{to} += {value};"


def rows_of(family: str, kind: str) -> Tuple[str, str]:
    first = "f(a[0])" if family == "row_max" else "0"
    if kind == "order":  # a thread a row: neighbours read far from each other
        return (
            "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= rows) return;\n"
            "  const float* a = x + long(i) * cols;\n"
            f"  float s = {first};\n  for (int j = 0; j < cols; ++j) {fold(family, 's', 'f(a[j])')}\n  y[i] = s;\n",
            "(rows + 127) / 128, 128",
        )
    begin = f"  const float* a = x + long(blockIdx.x) * cols;\n  float s = {first};\n"
    shuffle = (
        "  for (int k = 16; k > 0; k /= 2) " + fold(family, "s", "__shfl_xor_sync(~0u, s, k)") + "\n"
        "  if (threadIdx.x == 0) y[blockIdx.x] = s;\n"
    )
    if kind == "warp":
        return (
            f"{begin}  for (int j = threadIdx.x; j < cols; j += 32) {fold(family, 's', 'f(a[j])')}\n{shuffle}",
            "rows, 32",
        )
    loop = "  if (threadIdx.x < cols) " if kind == "no tail" else "  for (int j = threadIdx.x; j < cols; j += n) "
    value = "f(a[threadIdx.x])" if kind == "no tail" else "f(a[j])"
    return (
        f"  __shared__ float t[n];\n{begin}{loop}{fold(family, 's', value)}\n  t[threadIdx.x] = s;\n"
        "  __syncthreads();\n"
        "  for (int k = n / 2; k > 0; k /= 2) {\n"
        f"    if (threadIdx.x < k) {fold(family, 't[threadIdx.x]', 't[threadIdx.x + k]')}\n    __syncthreads();\n  }}\n"
        "  if (threadIdx.x == 0) y[blockIdx.x] = t[0];\n",
        "rows, n",
    )


def columns_of(kind: str) -> Tuple[str, str]:
    if kind == "order":  # a block a column: neighbours read far from each other
        return (
            "  __shared__ float t[128];\n  float s = 0;\n"
            "  for (int i = threadIdx.x; i < rows; i += 128) s += f(x[long(i) * cols + blockIdx.x]);\n"
            "  t[threadIdx.x] = s;\n  __syncthreads();\n  for (int k = 64; k > 0; k /= 2) {\n"
            "    if (threadIdx.x < k) t[threadIdx.x] += t[threadIdx.x + k];\n    __syncthreads();\n  }\n"
            "  if (threadIdx.x == 0) y[blockIdx.x] = t[0];\n",
            "cols, 128",
        )
    if kind == "split":  # the threads of a block share the rows of 32 columns
        return (
            "  __shared__ float t[n / 32][32];\n  const int j = blockIdx.x * 32 + threadIdx.x % 32;\n  float s = 0;\n"
            "  if (j < cols)\n    for (int i = threadIdx.x / 32; i < rows; "
            "i += n / 32) s += f(x[long(i) * cols + j]);\n"
            "  t[threadIdx.x / 32][threadIdx.x % 32] = s;\n  __syncthreads();\n"
            "  if (threadIdx.x >= 32 || j >= cols) return;\n"
            "  for (int k = 1; k < n / 32; ++k) s += t[k][threadIdx.x];\n  y[j] = s;\n",
            "(cols + 31) / 32, n",
        )
    check = "" if kind == "no tail" else "  if (j >= cols) return;\n"
    return (
        f"  const int j = blockIdx.x * n + threadIdx.x;\n{check}  float s = 0;\n"
        "  for (int i = 0; i < rows; ++i) s += f(x[long(i) * cols + j]);\n  y[j] = s;\n",
        "cols / n, n" if kind == "no tail" else "(cols + n - 1) / n, n",
    )


def turned_of(kind: str) -> Tuple[str, str]:
    if kind in ("plain", "order"):
        a, b, across = ("i", "j", "cols") if kind == "plain" else ("j", "i", "rows")
        return (
            f"  const long at = long(blockIdx.x) * 256 + threadIdx.x;\n  if (at >= long(rows) * cols) return;\n"
            f"  const int {a} = at / {across}, {b} = at % {across};\n"
            "  y[long(j) * rows + i] = f(x[long(i) * cols + j]);\n",
            "(long(rows) * cols + 255) / 256, 256",
        )
    inside = ("", "") if kind == "no tail" else ("if (i < rows && j < cols) ", "if (p < rows && q < cols) ")
    grid = "dim3(cols / n, rows / n)" if kind == "no tail" else "dim3((cols + n - 1) / n, (rows + n - 1) / n)"
    return (
        f"  __shared__ float t[n][n{'' if kind == 'no pad' else ' + 1'}];\n"
        "  const int i = blockIdx.y * n + threadIdx.y, j = blockIdx.x * n + threadIdx.x;\n"
        f"  {inside[0]}t[threadIdx.y][threadIdx.x] = f(x[long(i) * cols + j]);\n  __syncthreads();\n"
        "  const int p = blockIdx.y * n + threadIdx.x, q = blockIdx.x * n + threadIdx.y;\n"
        f"  {inside[1]}y[long(q) * rows + p] = t[threadIdx.x][threadIdx.y];\n",
        f"{grid}, dim3(n, n)",
    )


def kernel(task: Any, kind: str, size: int) -> str:
    body, launch = {"col_sum": columns_of, "turned": turned_of}.get(task.family, lambda x: rows_of(task.family, x))(
        kind
    )
    const = f"constexpr int n = {size};\n\n" if size else ""
    return head(task.f) + const + KERNEL + body + "}\n" + SOLVE + f"  run<<<{launch}>>>(x, y, rows, cols);\n}}\n"


def reference(task: Any, value: str, size: str) -> str:
    """A thread an output; f and the size of its terms in double."""
    value, size = value.replace("std::", ""), size.replace("std::", "")
    begin = (
        f"#include <cmath>\n\n__device__ double f(double v) {{ return {value}; }}\n"
        f"__device__ double size(double v) {{ return {size}; }}\n\n"
        "__global__ void run(const float* x, double* y, double* y_scale, int rows, int cols) {\n"
        "  const long i = long(blockIdx.x) * 128 + threadIdx.x;\n"
    )
    outputs, inner, place = {
        "turned": ("long(rows) * cols", "1", "i % rows * cols + i / rows"),
        "col_sum": ("cols", "rows", "long(j) * cols + i"),
    }.get(task.family, ("rows", "cols", "i * cols + j"))
    step = "result = max(result, f(v));\n    sizes = max(sizes, size(v));"
    scale = "sizes"
    if task.family != "row_max" and task.family != "turned":
        step = "result += f(v);\n    sizes += size(v);\n    most = max(most, fabs(result));"
        scale = f"sizes + sqrt(double({inner})) * most"
    start = "-INFINITY" if scale == "sizes" else "0"
    return (
        begin + f"  if (i >= {outputs}) return;\n  double result = {start}, sizes = 0, most = 0;\n"
        f"  for (int j = 0; j < {inner}; ++j) {{\n    const double v = x[{place}];\n    {step}\n  }}\n"
        f"  y[i] = result;\n  y_scale[i] = {scale};\n  (void)most;\n}}\n\n"
        'extern "C" void reference(const float* x, double* y, double* y_scale, int rows, int cols) {\n'
        f"  run<<<({outputs} + 127) / 128, 128>>>(x, y, y_scale, rows, cols);\n}}\n"
    )
