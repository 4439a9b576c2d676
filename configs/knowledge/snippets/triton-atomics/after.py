# bench: f(x float[16384x512])
@triton.jit
def column_energy(x, y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (r[:, None] < rows) & (c[None, :] < cols)
    v = tl.load(x + r[:, None] * cols + c[None, :], mask=mask, other=0.0)
    tl.atomic_add(y + c, tl.sum(v * v, axis=0), mask=c < cols, sem="relaxed")


def f(x):
    rows, cols = x.shape
    y = torch.zeros(cols, device=x.device)
    column_energy[(triton.cdiv(rows, 128), triton.cdiv(cols, 64))](x, y, rows, cols, 128, 64)
    return y
