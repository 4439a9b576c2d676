#include "retrieval/corpora/distinct_kernels.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "messages/base/text.hpp"
#include "retrieval/code/reference_code.hpp"
#include "retrieval/guard/near_duplicates.hpp"

namespace kernelmill {

namespace {

/// What the leak guard must not forget of a kernel, and its licence: nothing stands for a kernel
/// that solves another task, or is another source's.
std::string place_of(const kernel_example& x) {
  return x.task + '\n' + x.rights_source + '\n';
}

/// Equal for references that ask for the same. Kernels without one are compared with each other.
std::string key_of_code(std::string_view reference) {
  if (reference.empty()) return {};
  if (auto signature = read_reference(reference).signature; !signature.empty())
    return "signature " + signature;
  auto shingles = shingles_of_code(reference);
  return {reinterpret_cast<const char*>(shingles.data()), shingles.size() * sizeof shingles[0]};
}

} // namespace

std::vector<bool> repeated_kernels(const std::vector<kernel_example>& all) {
  std::vector<size_t> best_first(all.size());
  std::iota(best_first.begin(), best_first.end(), size_t{0});
  std::stable_sort(best_first.begin(), best_first.end(),
                   [&](size_t a, size_t b) { return all[a].speedup > all[b].speedup; });
  std::vector<bool> result(all.size());
  std::unordered_map<std::string, std::unordered_set<std::string_view>> texts; // by place
  std::unordered_map<std::string, std::vector<size_t>> by_reference;
  for (auto i : best_first) {
    auto place = place_of(all[i]);
    if (texts[place].insert(trimmed(std::string_view{all[i].source})).second)
      by_reference[place + key_of_code(all[i].reference)].push_back(i);
    else
      result[i] = true;
  }
  for (const auto& [unused, group] : by_reference) {
    if (group.size() < 2) continue;
    near_duplicates known;
    for (auto i : group) {
      auto code = shingles_of_code(all[i].source);
      if (known.find(code))
        result[i] = true;
      else
        known.add(std::move(code), {});
    }
  }
  return result;
}

} // namespace kernelmill
