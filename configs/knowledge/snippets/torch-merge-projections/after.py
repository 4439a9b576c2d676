# bench: f(x float[128x512], w float[1536x512]) within 1e-4
def f(x, w):  # w: the three weights, concatenated along the rows
    q, k, v = F.linear(x, w).split(512, dim=1)
    return q, k, v
