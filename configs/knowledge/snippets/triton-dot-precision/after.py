# bench: f(a float[64x64], b float[64x64])
@triton.jit
def product(a, b, c, N: tl.constexpr, PRECISION: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    acc = tl.dot(tl.load(a + at), tl.load(b + at), input_precision=PRECISION)
    tl.store(c + at, acc)


def f(a, b):
    c = torch.empty_like(a)
    product[(1,)](a, b, c, a.shape[0], "tf32x3")
    return c
