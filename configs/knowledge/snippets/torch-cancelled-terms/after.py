# bench: f(x float[8x32x112x112], bias float[32]) within 1e-4
def f(x, bias):
    return F.instance_norm(x)  # the mean that it subtracts holds the bias
