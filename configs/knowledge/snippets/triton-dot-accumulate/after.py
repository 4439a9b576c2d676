# bench: f(a bf16[512x256], b bf16[256x384])
@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        p = tl.load(a + m[:, None] * K + k, mask=(m[:, None] < M) & (k < K), other=0)
        q = tl.load(b + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0)
        acc = tl.dot(p, q, acc)
    where = c + m[:, None] * N + n
    tl.store(where, acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n < N))


def f(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    product[(triton.cdiv(M, 128), triton.cdiv(N, 128))](a, b, c, M, N, K, 128, 128, 64, num_warps=8)
    return c
