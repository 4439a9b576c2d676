# bench: f(x float[64x50])
@triton.jit
def third_of_each(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)  # a power of two; the mask gives the true size
    v = tl.load(x + row * cols + i, mask=i < cols, other=0.0)
    third = tl.sum(tl.where(i == 2, v, 0.0), axis=0)  # what v[2] would be
    tl.store(y + row, third)


def f(x):
    y = torch.empty(x.shape[0], device=x.device)
    third_of_each[(x.shape[0],)](x, y, x.shape[1], triton.next_power_of_2(x.shape[1]))
    return y
