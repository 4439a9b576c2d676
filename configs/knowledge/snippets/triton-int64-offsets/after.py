# bench: f(x half[4096x1024])
@triton.jit
def copy_row(x, y, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * stride
    y += row * stride
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < cols), mask=i < cols)


def f(x):
    y = torch.empty_like(x)
    copy_row[(x.shape[0],)](x, y, x.stride(0), x.shape[1], triton.next_power_of_2(x.shape[1]))
    return y
