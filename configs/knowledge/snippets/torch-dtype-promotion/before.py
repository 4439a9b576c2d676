# bench: f(x float[1024x1024]) within 1e-6
def f(x):
    scale = torch.tensor([0.7], dtype=torch.float64, device=x.device)
    return (x * scale + 0.1).float()
