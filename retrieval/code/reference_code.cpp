#include "retrieval/code/reference_code.hpp"

namespace kernelmill {

reference_code read_reference(std::string_view code) {
  return {{}, std::string{code}, {}};
}

} // namespace kernelmill
