# bench: f(x float[1024x1024]) within 1e-6
def f(x):
    return x * 0.7 + 0.1
