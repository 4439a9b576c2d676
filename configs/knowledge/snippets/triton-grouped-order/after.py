# bench: f(n int[256], M = 16, N = 16)
@triton.jit
def tile_of(pid, tiles_m, tiles_n, GROUP: tl.constexpr):
    width = GROUP * tiles_n
    first = pid // width * GROUP
    height = min(tiles_m - first, GROUP)  # the last group may be lower
    return first + pid % width % height, pid % width // height


@triton.jit
def tiles(y, tiles_m, tiles_n):
    m, n = tile_of(tl.program_id(0), tiles_m, tiles_n, 8)
    tl.store(y + m * tiles_n + n, tl.program_id(0))


def f(n, M, N):
    y = torch.empty_like(n)
    tiles[(M * N,)](y, M, N)
    return y
