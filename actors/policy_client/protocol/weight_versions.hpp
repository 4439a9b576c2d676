#pragma once

// Which weights made which tokens of a completion, as far as a server tells.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simdjson::dom {
class element;
}

namespace kernelmill {

struct weight_span {
  std::string version;
  uint32_t start = 0; ///< half-open, in tokens of the completion
  uint32_t end = 0;

  friend bool operator==(const weight_span&, const weight_span&) = default;
};

/// Reads `weight_versions`, or a single `weight_version`, of a choice, of meta_info or of
/// metadata. What is read last stands: a stream tells it all in its last event.
void read_weight_versions(std::vector<weight_span>& to,
                          const std::optional<simdjson::dom::element>& object);

/// One version of all tokens, in the same words.
void add_weight_version(std::vector<weight_span>& to, std::string_view version);

/// Makes spans that fit a completion of so many tokens: ordered, within it, none inside another. A
/// version that came without bounds is that of all of them.
void settle_weight_versions(std::vector<weight_span>& spans, size_t tokens);

} // namespace kernelmill
