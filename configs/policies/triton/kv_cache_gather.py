# One program for each entry of the table: a page is copied, places behind the end become 0.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gather_kernel(cache, table, lengths, out, blocks, page_size, width, SLOTS: tl.constexpr, CHANNELS: tl.constexpr):
    sequence = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    slot = tl.arange(0, SLOTS)
    channel = tl.arange(0, CHANNELS)
    page = tl.load(table + sequence * blocks + block)
    valid = tl.load(lengths + sequence) - block * page_size
    inside = (slot[:, None] < page_size) & (channel[None, :] < width)
    at = slot[:, None] * width + channel[None, :]
    value = tl.load(cache + page * page_size * width + at, mask=inside & (slot[:, None] < valid), other=0.0)
    tl.store(out + (sequence * blocks + block) * page_size * width + at, value, mask=inside)


class ModelNew(nn.Module):
    def forward(self, cache, table, lengths):
        page_size, width = cache.shape[1:]
        sequences, blocks = table.shape
        out = torch.empty(sequences, blocks * page_size, width, device=cache.device, dtype=cache.dtype)
        gather_kernel[(sequences, blocks)](
            cache,
            table,
            lengths,
            out,
            blocks,
            page_size,
            width,
            SLOTS=triton.next_power_of_2(page_size),
            CHANNELS=triton.next_power_of_2(width),
        )
        return out
