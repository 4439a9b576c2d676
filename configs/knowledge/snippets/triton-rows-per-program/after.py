# bench: f(x float[262144x64])
@triton.jit
def norms(x, y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, BLOCK)
    mask = (r[:, None] < rows) & (c[None, :] < cols)
    v = tl.load(x + r[:, None] * cols + c[None, :], mask=mask, other=0.0)
    tl.store(y + r, tl.sum(tl.abs(v), axis=1), mask=r < rows)


def f(x):
    rows, cols = x.shape
    y = torch.empty(rows, device=x.device)
    block = triton.next_power_of_2(cols)
    per = max(1, 4096 // block)
    norms[(triton.cdiv(rows, per),)](x, y, rows, cols, per, block)
    return y
