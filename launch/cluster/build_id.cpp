#include "launch/cluster/build_id.hpp"

namespace kernelmill {

std::string build_id() {
  return std::string{KERNELMILL_VERSION} + " (" + KERNELMILL_GIT + ")";
}

} // namespace kernelmill
