# bench: f(x float[8x64x32x32], w float[64x64x3x3]) within 1e-4
def f(x, w):
    x = x.to(memory_format=torch.channels_last)  # once, at the input of the network
    w = w.to(memory_format=torch.channels_last)  # once, when the module is built
    y = F.relu_(F.conv2d(x, w, padding=1))
    assert y.is_contiguous(memory_format=torch.channels_last)
    return y
