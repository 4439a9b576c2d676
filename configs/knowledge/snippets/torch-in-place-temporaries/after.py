# bench: f(x float[1024x1024], y float[1024x1024]) within 1e-6
def f(x, y):
    t = x * y  # the one allocation
    return t.mul_(0.5).add_(x).clamp_(-1, 1)
