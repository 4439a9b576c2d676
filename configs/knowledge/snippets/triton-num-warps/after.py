# bench: f(x float[4096x4096])
@triton.jit
def peaks(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=0.0)
    tl.store(y + row, tl.max(tl.abs(v), axis=0))


def f(x):
    rows, cols = x.shape
    y = torch.empty(rows, device=x.device)
    block = triton.next_power_of_2(cols)
    warps = min(max(block // 512, 1), 16)  # 16 elements a thread, with 32 lanes
    peaks[(rows,)](x, y, cols, block, num_warps=warps)
    return y
