# bench: f(a float[512x512], b float[512x512], v float[512x8]) within 1e-4
def f(a, b, v):
    return a @ (b @ v)
