"""LayerNorm over millions of elements: moments of chunks, their merge, then one pass."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def chunk_moments_kernel(x_ptr, mean_ptr, m2_ptr, length, chunks, CHUNK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    at = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = at < length
    count = tl.minimum(length - chunk * CHUNK, CHUNK)
    x = tl.load(x_ptr + row * length + at, mask=inside, other=0.0)
    mean = tl.sum(x, axis=0) / count
    away = tl.where(inside, x - mean, 0.0)
    tl.store(mean_ptr + row * chunks + chunk, mean)
    tl.store(m2_ptr + row * chunks + chunk, tl.sum(away * away, axis=0))


@triton.jit
def merge_kernel(mean_ptr, m2_ptr, out_ptr, length, chunks, eps, CHUNK: tl.constexpr, MOST: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, MOST)
    inside = at < chunks
    count = tl.where(inside, tl.minimum(length - at * CHUNK, CHUNK), 0).to(tl.float32)
    means = tl.load(mean_ptr + row * chunks + at, mask=inside, other=0.0)
    m2 = tl.load(m2_ptr + row * chunks + at, mask=inside, other=0.0)
    mean = tl.sum(means * count, axis=0) / length
    away = tl.where(inside, means - mean, 0.0)
    variance = (tl.sum(m2, axis=0) + tl.sum(away * away * count, axis=0)) / length
    tl.store(out_ptr + 2 * row, mean)
    tl.store(out_ptr + 2 * row + 1, 1.0 / tl.sqrt(variance + eps))


@triton.jit
def normalize_kernel(x_ptr, weight_ptr, bias_ptr, moments_ptr, y_ptr, length, CHUNK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK)
    inside = at < length
    mean = tl.load(moments_ptr + 2 * row)
    scale = tl.load(moments_ptr + 2 * row + 1)
    x = tl.load(x_ptr + row * length + at, mask=inside)
    weight = tl.load(weight_ptr + at, mask=inside)
    bias = tl.load(bias_ptr + at, mask=inside)
    tl.store(y_ptr + row * length + at, (x - mean) * scale * weight + bias, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple) -> None:
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        length = self.ln.weight.numel()
        rows = x.numel() // length
        chunk = 8192
        chunks = triton.cdiv(length, chunk)
        means = torch.empty((rows, chunks), device=x.device, dtype=torch.float32)
        m2 = torch.empty_like(means)
        moments = torch.empty((rows, 2), device=x.device, dtype=torch.float32)
        y = torch.empty_like(x)
        chunk_moments_kernel[(rows, chunks)](x, means, m2, length, chunks, CHUNK=chunk)
        merge_kernel[(rows,)](means, m2, moments, length, chunks, self.ln.eps, CHUNK=chunk,
                              MOST=triton.next_power_of_2(chunks))
        normalize_kernel[(rows, chunks)](x, self.ln.weight, self.ln.bias, moments, y, length, CHUNK=chunk)
        return y
