# bench: f(x half[4096x1024], w half[1024])
@triton.jit
def scaled(x, w, y, rows, cols: tl.constexpr, ROWS: tl.constexpr, PROGRAMS: tl.constexpr):
    c = tl.arange(0, cols)
    weight = tl.load(w + c)  # once, for all tiles
    for t in tl.range(tl.program_id(0), tl.cdiv(rows, ROWS), PROGRAMS):
        r = t * ROWS + tl.arange(0, ROWS)
        at = r[:, None] * cols + c[None, :]
        v = tl.load(x + at, mask=r[:, None] < rows)
        tl.store(y + at, v * weight[None, :], mask=r[:, None] < rows)


def f(x, w, sms=132):
    y = torch.empty_like(x)
    scaled[(2 * sms,)](x, w, y, x.shape[0], x.shape[1], 4, 2 * sms)
    return y
