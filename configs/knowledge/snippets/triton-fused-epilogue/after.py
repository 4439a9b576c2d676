# bench: f(x float[128x128], bias float[128], residual half[128x128])
@triton.jit
def epilogue(acc, bias, residual, y, n, at, mask):
    acc += tl.load(bias + n, mask=mask, other=0.0)
    acc = acc * tl.sigmoid(acc)
    acc += tl.load(residual + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + at, acc.to(y.dtype.element_ty), mask=mask)


@triton.jit
def use(x, bias, residual, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m, n = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    acc = tl.load(x + m * N + n, mask=(m < M) & (n < N), other=0.0)  # in place of a product
    epilogue(acc, bias, residual, y, n, m * N + n, (m < M) & (n < N))


def f(x, bias, residual):
    y = torch.empty_like(residual)
    use[(1,)](x, bias, residual, y, *x.shape, 128, 128)
    return y
