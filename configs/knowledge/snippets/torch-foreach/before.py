# bench: f(x float[512x64]) within 1e-6
def f(x):
    return torch.stack([0.9 * row + 0.1 * row for row in x.unbind(0)])
