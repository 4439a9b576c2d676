# bench: f(x float[8x32x112x112], w float[32x32x1x1], gamma float[32], beta float[32], mean float[32], var float[32]) within 1e-4
def f(x, w, gamma, beta, mean, var):
    y = F.conv2d(x, w)
    return F.batch_norm(y, mean, var * var, gamma, beta, eps=1e-5)
