# A C++ extension that splits rows over threads and joins them; list of sources, flags.
import torch
import torch.nn as nn
import torch.utils.cpp_extension as extension

declaration = "torch::Tensor gelu_bias(torch::Tensor x, torch::Tensor bias, double scale);"
source = r"""
#include <cmath>
#include <thread>
#include <vector>

static void rows_of(const float* x, const float* bias, float* y, long from, long to, long columns,
                    float scale) {
  for (long i = from; i < to; ++i)
    for (long j = 0; j < columns; ++j) {
      const float z = x[i * columns + j] + bias[j];
      y[i * columns + j] = z * 0.5f * (1.0f + std::erf(z * 0.70710678118654752f)) * scale;
    }
}

torch::Tensor gelu_bias(torch::Tensor x, torch::Tensor bias, double scale) {
  auto y = torch::empty_like(x);
  const long rows = x.size(0), columns = x.size(1), parts = 2;
  std::vector<std::thread> threads;
  for (long k = 0; k < parts; ++k)
    threads.emplace_back(rows_of, x.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
                         rows * k / parts, rows * (k + 1) / parts, columns,
                         static_cast<float>(scale));
  for (auto& thread : threads) thread.join();
  return y;
}
"""

gelu = extension.load_inline("gelu_bias_threads", [declaration, source], functions="gelu_bias",
                             extra_cflags=["-O3", "-pthread"], extra_ldflags=["-pthread"])


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features) * 0.5)

    def forward(self, x, scale):
        return gelu.gelu_bias(x, self.bias.detach(), scale)
