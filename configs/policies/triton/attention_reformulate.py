# One pass over the keys: maximum, sum and result run along and are rescaled when the maximum grows.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention_kernel(q, k, v, o, sequence, factor, WIDTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, WIDTH)
    first = head * sequence
    query = tl.load(q + (first + i)[:, None] * WIDTH + d[None, :], mask=i[:, None] < sequence, other=0.0)
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    result = tl.zeros((BM, WIDTH), dtype=tl.float32)
    behind = tl.minimum((tl.program_id(0) + 1) * BM, sequence)
    for start in range(0, behind, BN):
        j = start + tl.arange(0, BN)
        key = tl.load(k + (first + j)[None, :] * WIDTH + d[:, None], mask=j[None, :] < sequence, other=0.0)
        value = tl.load(v + (first + j)[:, None] * WIDTH + d[None, :], mask=j[:, None] < sequence, other=0.0)
        score = tl.dot(query, key, input_precision="ieee") * factor
        score = tl.where((j[None, :] <= i[:, None]) & (j[None, :] < sequence), score, -float("inf"))
        highest = tl.maximum(top, tl.max(score, axis=1))
        shrunk = tl.exp(top - highest)
        p = tl.exp(score - highest[:, None])
        total = total * shrunk + tl.sum(p, axis=1)
        result = tl.dot(p, value, result * shrunk[:, None], input_precision="ieee")
        top = highest
    tl.store(o + (first + i)[:, None] * WIDTH + d[None, :], result / total[:, None], mask=i[:, None] < sequence)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        heads, sequence, width = q.shape
        o = torch.empty_like(q)
        attention_kernel[(triton.cdiv(sequence, 32), heads)](
            q, k, v, o, sequence, width**-0.5, WIDTH=width, BM=32, BN=32
        )
        return o
