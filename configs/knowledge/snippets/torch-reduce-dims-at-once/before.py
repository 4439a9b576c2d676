# bench: f(x float[32x64x56x56]) within 1e-5
def f(x):
    return x.max(dim=3)[0].max(dim=2)[0]
