#include "gpu/profiler/spill_remark.hpp"

#include <charconv>

namespace kernelmill {

namespace {

constexpr std::string_view head = "spill in ";
constexpr std::string_view tail = " instructions of local memory";

} // namespace

std::string spill_remark(const spill_place& x) {
  return std::string{head} + x.kernel + ": " + std::to_string(x.instructions) + std::string{tail};
}

std::optional<spill_place> read_spill_remark(std::string_view message) {
  if (!message.starts_with(head) || !message.ends_with(tail)) return std::nullopt;
  message.remove_prefix(head.size());
  message.remove_suffix(tail.size());
  auto colon = message.rfind(": ");
  if (colon == message.npos) return std::nullopt;
  spill_place result{std::string{message.substr(0, colon)}, 0};
  auto number = message.substr(colon + 2);
  auto [end, problem] =
      std::from_chars(number.data(), number.data() + number.size(), result.instructions);
  if (problem != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  return result;
}

} // namespace kernelmill
