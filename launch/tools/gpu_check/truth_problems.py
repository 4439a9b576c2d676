"""Problems of the contract `torch`, 5 µs to 30 ms on an H200, and modules whose times a plain process can measure: the
model itself, twice, three times, the same by other means, and kernels in Triton."""

PROBLEM = """import torch
import torch.nn as nn


class Model(nn.Module):
{init}    def forward(self, {names}):
        return {answer}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""

HEAD = "import torch\nimport torch.nn as nn\n\n\n"

AGAIN = (
    HEAD
    + """class Once(nn.Module):
{init}    def forward(self, {names}):
        return {answer}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.once = Once()

    def forward(self, {names}):
{calls}        return self.once({names})
"""
)

OTHERWISE = (
    HEAD
    + """class ModelNew(nn.Module):
{init}    def forward(self, {names}):
{body}
"""
)

TRITON = """import torch
import torch.nn as nn
import triton
import triton.language as tl


"""

SOFTMAX = (
    TRITON
    + """@triton.jit
def softmax_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + at, values / tl.sum(values, axis=0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        softmax_kernel[(rows,)](x, y, columns, BLOCK=block, num_warps=max(4, min(16, block // 512)))
        return y
"""
)

LAYER_NORM = (
    TRITON
    + """@triton.jit
def layer_norm_kernel(x, weight, bias, y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    off = tl.where(mask, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(off * off, axis=0) / columns + eps)
    w = tl.load(weight + at, mask=mask)
    b = tl.load(bias + at, mask=mask)
    tl.store(y + row * columns + at, off * scale * w + b, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm({columns})

    def forward(self, x):
        y = torch.empty_like(x)
        rows, columns = x.shape
        layer_norm_kernel[(rows,)](x, self.norm.weight, self.norm.bias, y, columns, self.norm.eps,
                                   BLOCK=triton.next_power_of_2(columns), num_warps=8)
        return y
"""
)

GELU = (
    TRITON
    + """@triton.jit
def gelu_kernel(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < count)
    tl.store(y + at, values * 0.5 * (1.0 + tl.erf(values * 0.7071067811865476)), mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""
)

ROW_SUM = (
    TRITON
    + """@triton.jit
def row_sum_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    tl.store(y + row, tl.sum(tl.load(x + row * columns + at, mask=at < columns, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        row_sum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return y
"""
)


def lines(text, indent):
    return "".join(" " * indent + x + "\n" for x in text.splitlines())


def problem(answer, inputs, otherwise, triton=None, init="", names="x"):
    """Returns the text of the problem and of its modules by name."""
    init = f"    def __init__(self):\n        super().__init__()\n{lines(init, 8)}\n" if init else ""
    text = PROBLEM.format(init=init, names=names, answer=answer, inputs=inputs)
    again = {
        f"{word}": AGAIN.format(init=init, names=names, answer=answer, calls=lines(f"self.once({names})\n" * times, 8))
        for word, times in (("twice", 1), ("three_times", 2))
    }
    modules = {"copy": text.split("\n\n\ndef get_inputs")[0].replace("class Model(", "class ModelNew(") + "\n"}
    modules |= again
    modules["otherwise"] = OTHERWISE.format(init=init, names=names, body=lines(otherwise, 8).rstrip("\n"))
    if triton:
        modules["triton"] = triton
    return text, modules


def softmax(rows, columns):
    return problem(
        "torch.softmax(x, dim=1)",
        f"torch.randn({rows}, {columns})",
        "e = torch.exp(x - x.amax(1, keepdim=True))\nreturn e / e.sum(1, keepdim=True)",
        SOFTMAX,
    )


def gelu(rows, columns):
    return problem(
        "torch.nn.functional.gelu(x)",
        f"torch.randn({rows}, {columns})",
        "return x * 0.5 * (1.0 + torch.erf(x * 0.7071067811865476))",
        GELU,
    )


def matmul(n, _):
    return problem(
        "torch.matmul(a, b)",
        f"torch.randn({n}, {n}), torch.randn({n}, {n})",
        "y = torch.empty(a.shape[0], b.shape[1], device=a.device, dtype=a.dtype)\nhalf = a.shape[0] // 2\n"
        "torch.mm(a[:half], b, out=y[:half])\ntorch.mm(a[half:], b, out=y[half:])\nreturn y",
        names="a, b",
    )


def layer_norm(rows, columns):
    return problem(
        "self.norm(x)",
        f"torch.randn({rows}, {columns})",
        "return torch.nn.functional.layer_norm(x, x.shape[1:], self.norm.weight, self.norm.bias, self.norm.eps)",
        LAYER_NORM.replace("{columns}", str(columns)),
        init=f"self.norm = nn.LayerNorm({columns})",
    )


def row_sum(rows, columns):
    return problem(
        "torch.sum(x, dim=1)",
        f"torch.randn({rows}, {columns})",
        "return x.view(x.shape[0], 64, -1).sum(2).sum(1)",
        ROW_SUM,
    )


def mean_square(rows, columns):
    return problem("torch.mean(x * x)", f"torch.randn({rows}, {columns})", "return x.square().sum(1).sum() / x.numel()")


# name: (maker, rows, columns). The first six are those of the first table that was measured.
ALL = {
    "softmax_16384x8192": (softmax, 16384, 8192),
    "softmax_4096x8192": (softmax, 4096, 8192),
    "softmax_4096x4096": (softmax, 4096, 4096),
    "softmax_4096x1024": (softmax, 4096, 1024),
    "matmul_4096": (matmul, 4096, 0),
    "matmul_512": (matmul, 512, 0),
    "gelu_1024x1024": (gelu, 1024, 1024),
    "gelu_4096x4096": (gelu, 4096, 4096),
    "gelu_16384x16384": (gelu, 16384, 16384),
    "matmul_2048": (matmul, 2048, 0),
    "layer_norm_8192x4096": (layer_norm, 8192, 4096),
    "row_sum_32768x4096": (row_sum, 32768, 4096),
    "mean_square_8192x8192": (mean_square, 8192, 8192),
    "matmul_9216": (matmul, 9216, 0),
}


def chosen(wanted=()):
    """Names that begin with one of the words; a number is the first so many."""
    if len(wanted) == 1 and wanted[0].isdigit():
        return list(ALL)[: int(wanted[0])]
    return [name for name in ALL if not wanted or any(name.startswith(x) for x in wanted)]


def text_of(name, small=False):
    """(problem, modules); `small` for a look at a machine without a GPU."""
    maker, rows, columns = ALL[name]
    return maker(max(128, rows // 16), columns and max(128, columns // 16)) if small else maker(rows, columns)
