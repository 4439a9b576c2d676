# bench: f(x float[2048x65536])
@triton.jit
def squares(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        v = tl.load(x + row * cols + start + i, mask=start + i < cols, other=0.0)
        acc += v * v
    tl.store(y + row, tl.sum(acc, axis=0))


def f(x):
    rows, cols = x.shape
    y = torch.empty(rows, device=x.device)
    squares[(rows,)](x, y, cols, BLOCK=2048, num_warps=8)
    return y
