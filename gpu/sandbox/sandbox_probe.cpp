#include "gpu/sandbox/sandbox_parts.hpp"
namespace kernelmill {
std::vector<sandbox_layer> sandbox::probe() {
  return {};
}
} // namespace kernelmill
