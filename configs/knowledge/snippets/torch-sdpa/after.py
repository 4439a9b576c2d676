# bench: f(q float[2x8x512x64], k float[2x8x512x64], v float[2x8x512x64]) within 1e-4 needs torch 2.0
def f(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
