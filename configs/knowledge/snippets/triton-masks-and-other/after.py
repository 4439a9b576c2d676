# bench: f(x float[1000x777])
@triton.jit
def sum_exp(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < cols
    v = tl.load(x + row * cols + i, mask=mask, other=-float("inf"))
    m = tl.max(v, axis=0)
    tl.store(y + row, m + tl.log(tl.sum(tl.exp(v - m), axis=0)))  # exp(-inf) is 0


def f(x):
    rows, cols = x.shape
    y = torch.empty(rows, device=x.device)
    sum_exp[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols))
    return y
