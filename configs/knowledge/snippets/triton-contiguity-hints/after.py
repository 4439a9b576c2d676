# bench: f(table int[64 < 64], x half[64x256])
@triton.jit
def pages(table, x, y, PAGE: tl.constexpr):
    p = tl.program_id(0)
    base = tl.multiple_of(tl.load(table + p) * PAGE, PAGE)
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, PAGE), PAGE), PAGE)
    tl.store(y + p * PAGE + i, tl.load(x + base + i))


def f(table, x):
    y = torch.empty_like(x)
    pages[(table.numel(),)](table, x, y, x.shape[1])
    return y
