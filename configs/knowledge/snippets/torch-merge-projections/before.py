# bench: f(x float[128x512], w float[1536x512]) within 1e-4
def f(x, w):
    return F.linear(x, w[:512]), F.linear(x, w[512:1024]), F.linear(x, w[1024:])
