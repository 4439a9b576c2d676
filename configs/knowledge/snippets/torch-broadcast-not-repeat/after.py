# bench: f(x float[64x32x8192], b float[64x8192]) within 0
def f(x, b):
    return x * b[:, None, :]
