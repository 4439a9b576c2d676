# bench: f(x float[4194304])
@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 1024}, num_warps=4),
        triton.Config({"BLOCK": 2048}, num_warps=8),
        triton.Config({"BLOCK": 4096}, num_warps=8),
    ],
    key=["n"],
)
@triton.jit
def shifted(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * 2 + 1, mask=i < n)


def f(x):
    y = torch.empty_like(x)
    n = x.numel()
    shifted[lambda META: (triton.cdiv(n, META["BLOCK"]),)](x, y, n)
    return y
