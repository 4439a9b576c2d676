import torch


class ModelNew(torch.nn.Module):
    def __init__(self, *arguments):
        super().__init__()

    def forward(self, *inputs):
        raise NotImplementedError("the kernel is not written yet")
