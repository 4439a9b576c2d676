# A C++ extension by load_inline, the functions listed.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cmath>
#include <torch/extension.h>

torch::Tensor row_softmax(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous() && x.scalar_type() == torch::kFloat32);
  auto y = torch::empty_like(x);
  const long rows = x.size(0), columns = x.size(1);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  for (long i = 0; i < rows; ++i, from += columns, to += columns) {
    float most = from[0];
    for (long j = 1; j < columns; ++j) most = std::max(most, from[j]);
    double sum = 0;
    for (long j = 0; j < columns; ++j) sum += to[j] = std::exp(from[j] - most);
    const float factor = static_cast<float>(1 / sum);
    for (long j = 0; j < columns; ++j) to[j] *= factor;
  }
  return y;
}
"""

module = load_inline(name="row_softmax_cpp", cpp_sources=source, functions=["row_softmax"],
                     extra_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.row_softmax(x)
