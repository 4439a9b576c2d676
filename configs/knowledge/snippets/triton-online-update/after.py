# bench: f(s float[64x64])
@triton.jit
def update(scores, m, l):
    """scores: (rows, keys), times log2(e); gives probabilities, the factor of the past, and (m, l)."""
    top = tl.maximum(m, tl.max(scores, axis=1))
    safe = tl.where(top == -float("inf"), 0.0, top)
    p = tl.exp2(scores - safe[:, None])
    past = tl.exp2(m - safe)
    return p, past, top, l * past + tl.sum(p, axis=1)


@triton.jit
def use(s, y, N: tl.constexpr):
    i = tl.arange(0, N)
    m = tl.full((N,), -float("inf"), tl.float32)
    l = tl.zeros((N,), tl.float32)
    p, past, m, l = update(tl.load(s + i[:, None] * N + i[None, :]), m, l)
    tl.store(y + i, l)


def f(s):
    y = torch.empty(s.shape[0], device=s.device)
    use[(1,)](s, y, s.shape[0])
    return y
