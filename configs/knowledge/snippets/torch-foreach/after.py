# bench: f(x float[512x64]) within 1e-6
def f(x):
    rows = list(x.unbind(0))
    scaled = torch._foreach_mul(rows, 0.9)
    torch._foreach_add_(scaled, rows, alpha=0.1)
    return torch.stack(scaled)
