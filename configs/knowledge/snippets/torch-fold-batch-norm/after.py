# bench: f(x float[8x32x112x112], w float[32x32x1x1], gamma float[32], beta float[32], mean float[32], var float[32]) within 1e-4
def f(x, w, gamma, beta, mean, var):
    s = gamma * torch.rsqrt(var * var + 1e-5)  # var * var: this test's variance is positive
    return F.conv2d(x, w * s[:, None, None, None], beta - mean * s)
