# bench: f(index int[65536 < 1000], table half[1000x256])
@triton.jit
def rows_of(index, table, y, count, COLS: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLS)
    mask = r[:, None] < count
    at = tl.load(index + r, mask=r < count, other=0).to(tl.int64)
    v = tl.load(table + at[:, None] * COLS + c[None, :], mask=mask)
    tl.store(y + r[:, None].to(tl.int64) * COLS + c[None, :], v, mask=mask)


def f(index, table):
    y = torch.empty((index.numel(), table.shape[1]), device=table.device, dtype=table.dtype)
    grid = (triton.cdiv(index.numel(), 16),)
    rows_of[grid](index, table, y, index.numel(), table.shape[1], 16)
    return y
