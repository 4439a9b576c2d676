#include "storage/export/split.hpp"

#include "messages/base/digest.hpp"

namespace kernelmill::exports {

std::string split_of(std::string_view task, std::string_view own) {
  if (!own.empty()) return std::string{own};
  auto digest = sha256_hex("kernelmill split 1\n" + std::string{task});
  auto number = std::stoul(digest.substr(0, 8), nullptr, 16);
  return number % 10 == 0 ? "dev" : "train";
}

} // namespace kernelmill::exports
