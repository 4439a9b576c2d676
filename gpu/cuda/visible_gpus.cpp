#include "gpu/cuda/visible_gpus.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "messages/base/text.hpp"

namespace kernelmill::cuda {

namespace {

bool starts_with(std::string_view text, std::string_view beginning) {
  return beginning.size() <= text.size() &&
         std::equal(beginning.begin(), beginning.end(), text.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

// As CUDA's strtol: "1gpu" is 1.
const gpu* by_number(const std::vector<gpu>& all, std::string_view entry) {
  if (entry.starts_with('+')) entry.remove_prefix(1);
  unsigned number = 0;
  auto [end, problem] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  if (problem != std::errc{}) return nullptr;
  auto i = std::find_if(all.begin(), all.end(), [&](const gpu& x) { return x.index == number; });
  return i == all.end() ? nullptr : &*i;
}

const gpu* by_uuid(const std::vector<gpu>& all, std::string_view entry) {
  if (!starts_with(entry, "GPU-")) return nullptr;
  const gpu* result = nullptr;
  for (const auto& x : all) {
    if (!starts_with(x.uuid, entry)) continue;
    if (result != nullptr) return nullptr; // two GPUs begin so
    result = &x;
  }
  return result;
}

tl::unexpected<error> no_mig(std::string_view entry) {
  return configuration_error(
      "unsupported_gpu",
      fmt::format("failed to use CUDA_VISIBLE_DEVICES: {} is a MIG instance, and judging on one is "
                  "not built in",
                  entry),
      "give this process whole GPUs, or use --backend cpu");
}

} // namespace

expected<std::vector<gpu>> visible_gpus(const std::vector<gpu>& all, const char* list) {
  if (list == nullptr) return all;
  auto first = trimmed(std::string_view{list}, " \t");
  if (starts_with(first, "MIG-")) return no_mig(first.substr(0, first.find(',')));
  const auto named = starts_with(first, "GPU-") ? by_uuid : by_number; // the first entry's form
  std::vector<gpu> result;
  for (std::string_view rest{list}; !rest.empty();) {
    auto comma = std::min(rest.find(','), rest.size());
    auto entry = trimmed(rest.substr(0, comma), " \t");
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const auto* found = named(all, entry);
    if (found == nullptr) break;
    bool twice = std::any_of(result.begin(), result.end(),
                             [&](const gpu& x) { return x.uuid == found->uuid; });
    if (twice) {
      result.clear();
      break;
    }
    result.push_back(*found);
  }
  if (result.empty())
    return infrastructure_error(
        "no_gpu",
        fmt::format("failed to find a GPU: CUDA_VISIBLE_DEVICES=\"{}\" shows none of {}", list,
                    all.size()),
        "list numbers or uuids of `nvidia-smi -L`, unset it for all, or use --backend cpu");
  return result;
}

} // namespace kernelmill::cuda
