# bench: f(x float[1024x1000])
@triton.jit
def merged(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    share = tl.where(n == 0, 0.0, n_b / tl.maximum(n, 1.0))
    d = mean_b - mean_a
    return mean_a + d * share, m2_a + m2_b + d * d * n_a * share, n


@triton.jit
def variances(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=0.0)
    one = tl.where(i < cols, 1.0, 0.0)
    mean, m2, n = tl.reduce((v, tl.zeros_like(v), one), 0, merged)
    tl.store(y + row, m2 / n)


def f(x):
    y = torch.empty(x.shape[0], device=x.device)
    variances[(x.shape[0],)](x, y, x.shape[1], triton.next_power_of_2(x.shape[1]))
    return y
