# bench: f(x float[262144x64])
@triton.jit
def norms(x, y, cols, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * cols + c, mask=c < cols, other=0.0)
    tl.store(y + r, tl.sum(tl.abs(v), axis=0))


def f(x):
    rows, cols = x.shape
    y = torch.empty(rows, device=x.device)
    norms[(rows,)](x, y, cols, triton.next_power_of_2(cols))
    return y
