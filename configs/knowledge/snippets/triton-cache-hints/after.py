# bench: f(x half[8192x4096], w half[4096])
@triton.jit
def two_pass(x, w, y, cols, BLOCK: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * cols
    y += tl.program_id(0).to(tl.int64) * cols
    i = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), 1e-6, tl.float32)
    for s in range(0, cols, BLOCK):
        v = tl.load(x + s + i, mask=s + i < cols, other=0.0, eviction_policy="evict_last")
        top = tl.maximum(top, tl.abs(v.to(tl.float32)))
    scale = 1 / tl.max(top, axis=0)
    for s in range(0, cols, BLOCK):
        v = tl.load(x + s + i, mask=s + i < cols, other=0.0, eviction_policy="evict_first")
        g = tl.load(w + s + i, mask=s + i < cols, other=0.0, eviction_policy="evict_last")
        tl.store(y + s + i, v * scale * g, mask=s + i < cols)


def f(x, w):
    y = torch.empty_like(x)
    two_pass[(x.shape[0],)](x, w, y, x.shape[1], 1024)
    return y
