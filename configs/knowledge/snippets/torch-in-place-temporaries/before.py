# bench: f(x float[1024x1024], y float[1024x1024]) within 1e-6
def f(x, y):
    t = x * y
    t = t * 0.5
    t = t + x
    return t.clamp(-1, 1)
