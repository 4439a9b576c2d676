# bench: f(q float[2x8x512x64], k float[2x8x512x64], v float[2x8x512x64]) within 1e-4 needs torch 2.0
def f(q, k, v):
    n = q.shape[2]
    s = q @ k.transpose(2, 3) / 64**0.5
    s = s.masked_fill(torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1), float("-inf"))
    return s.softmax(-1) @ v
