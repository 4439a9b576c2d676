# bench: f(x float[1048575], count = 1048575)
@triton.jit(do_not_specialize=["count"])
def doubled(x, y, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < count) * 2, mask=i < count)


def f(x, count):
    y = torch.empty_like(x)
    doubled[(triton.cdiv(count, 1024),)](x, y, count, 1024)
    return y
