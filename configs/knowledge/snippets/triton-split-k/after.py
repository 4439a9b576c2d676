# bench: f(a half[16x8192], b half[8192x64])
@triton.jit
def slices(a, b, part, K, N: tl.constexpr, SLICE: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, 16), tl.arange(0, N), tl.arange(0, BK)
    start = tl.program_id(0) * SLICE
    acc = tl.zeros((16, N), dtype=tl.float32)
    for k0 in range(start, start + SLICE, BK):
        p = tl.load(a + m[:, None] * K + k0 + k[None, :])
        q = tl.load(b + (k0 + k)[:, None] * N + n[None, :])
        acc = tl.dot(p, q, acc)
    tl.store(part + tl.program_id(0) * 16 * N + m[:, None] * N + n[None, :], acc)


def f(a, b):
    K, N = b.shape
    part = torch.empty((K // 512, 16, N), device=a.device)
    slices[(K // 512,)](a, b, part, K, N, 512, 64)
    return part.sum(0)
