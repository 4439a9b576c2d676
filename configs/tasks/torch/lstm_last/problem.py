"""Three layers of LSTM over a sequence, of which the last step is projected."""

import torch
import torch.nn as nn

BATCH = 8
STEPS = 192
INPUTS = 48
HIDDEN = 96
LAYERS = 3
OUTPUTS = 10


class Model(nn.Module):
    def __init__(self, inputs, hidden, layers, outputs):
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.head(states[:, -1])


def get_inputs():
    return [torch.rand(BATCH, STEPS, INPUTS)]


def get_init_inputs():
    return [INPUTS, HIDDEN, LAYERS, OUTPUTS]
