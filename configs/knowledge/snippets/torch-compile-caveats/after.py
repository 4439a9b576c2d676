@torch.compile(fullgraph=True)
def gated(x, gate, bias):
    return F.silu(gate) * (x + bias)
