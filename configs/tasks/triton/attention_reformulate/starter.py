import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scores_kernel(q, k, scores, sequence, factor, WIDTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(2).to(tl.int64)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    d = tl.arange(0, WIDTH)
    first = head * sequence
    query = tl.load(q + (first + i)[:, None] * WIDTH + d[None, :], mask=i[:, None] < sequence, other=0.0)
    key = tl.load(k + (first + j)[None, :] * WIDTH + d[:, None], mask=j[None, :] < sequence, other=0.0)
    dot = tl.dot(query, key, input_precision="ieee") * factor
    dot = tl.where(j[None, :] <= i[:, None], dot, -float("inf"))
    mask = (i[:, None] < sequence) & (j[None, :] < sequence)
    tl.store(scores + (first + i)[:, None] * sequence + j[None, :], dot, mask=mask)


@triton.jit
def softmax_kernel(scores, sequence, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    at = scores + row * sequence + j
    score = tl.load(at, mask=j < sequence, other=-float("inf"))
    p = tl.exp(score - tl.max(score, axis=0))
    tl.store(at, p / tl.sum(p, axis=0), mask=j < sequence)


@triton.jit
def values_kernel(p, v, o, sequence, WIDTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, WIDTH)
    first = head * sequence
    result = tl.zeros((BM, WIDTH), dtype=tl.float32)
    for start in range(0, sequence, BN):
        j = start + tl.arange(0, BN)
        inside = (i[:, None] < sequence) & (j[None, :] < sequence)
        weight = tl.load(p + (first + i)[:, None] * sequence + j[None, :], mask=inside, other=0.0)
        value = tl.load(v + (first + j)[:, None] * WIDTH + d[None, :], mask=j[:, None] < sequence, other=0.0)
        result = tl.dot(weight, value, result, input_precision="ieee")
    tl.store(o + (first + i)[:, None] * WIDTH + d[None, :], result, mask=i[:, None] < sequence)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        heads, sequence, width = q.shape
        scores = torch.empty(heads, sequence, sequence, device=q.device, dtype=q.dtype)
        o = torch.empty_like(q)
        tiles = triton.cdiv(sequence, 32)
        scores_kernel[(tiles, tiles, heads)](q, k, scores, sequence, width**-0.5, WIDTH=width, BM=32, BN=32)
        softmax_kernel[(heads * sequence,)](scores, sequence, BLOCK=triton.next_power_of_2(sequence))
        values_kernel[(tiles, heads)](scores, v, o, sequence, WIDTH=width, BM=32, BN=32)
        return o
