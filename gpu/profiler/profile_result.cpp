#include "gpu/profiler/profile_result.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_named_kernels = 8;
constexpr size_t longest_kernel_name = 80;
constexpr std::ptrdiff_t most_told_lines = 3;
constexpr size_t longest_told_source = 70;
constexpr size_t longest_place = 320;

struct named_value {
  std::string name;
  double value;
  std::string_view unit;
};

void add_values(std::vector<named_value>& to, const std::string& prefix, const metric_values& x) {
  for (const auto& row : metric_table())
    if (auto value = x[row.id]) to.push_back({prefix + std::string{row.name}, *value, row.unit});
}

metric_values joined(const metric_values& call, const kernel_metrics* kernel) {
  metric_values result = kernel != nullptr ? kernel->values : metric_values{};
  for (const auto& row : metric_table())
    if (auto value = call[row.id]) result.set(row.id, *value);
  return result;
}

bool is_flaw(std::string_view kind) {
  for (const auto& rule : bottleneck_rules())
    if (rule.kind == kind) return rule.is_flaw;
  return false;
}

struct told_kernel {
  const kernel_metrics* kernel = nullptr;
  std::vector<bottleneck_finding> cards;

  // Flaws that are sure go before limits, as among the cards of one kernel.
  std::pair<bool, double> rank() const {
    if (cards.empty()) return {false, 0};
    return {is_flaw(cards[0].kind) && cards[0].confidence >= 0.6, cards[0].confidence};
  }
};

std::vector<bottleneck_finding> cards_of(const metric_values& call, const kernel_metrics* kernel) {
  auto result = read_cards(joined(call, kernel));
  if (kernel == nullptr) return result;
  for (auto& x : result)
    if (x.kind == "register_spills") x.lines = kernel->spills;
  return result;
}

// Where times are known, the kernel that takes most of them; else the one with the most to say.
told_kernel choose(const metric_values& call, std::span<const kernel_metrics> kernels) {
  told_kernel result{costliest(kernels), {}};
  result.cards = cards_of(call, result.kernel);
  if (result.kernel == nullptr || result.kernel->values[metric::time]) return result;
  for (const auto& x : kernels) {
    told_kernel other{&x, cards_of(call, &x)};
    if (other.rank() > result.rank()) result = std::move(other);
  }
  return result;
}

} // namespace

std::string place_of(const bottleneck_finding& x) {
  std::string result;
  for (const auto& line : x.lines) {
    if (&line - x.lines.data() == most_told_lines) break;
    auto source = std::string{utf8_prefix(line.source, longest_told_source)};
    auto one =
        fmt::format("{}line {}{} ({} of {})", result.empty() ? "in the source: " : "; ", line.line,
                    source.empty() ? "" : " `" + source + "`", line.instructions, line.what);
    if (result.size() + one.size() > longest_place) break;
    result += one;
  }
  return result;
}

std::vector<std::string> lines_of(std::span<const bottleneck_finding> cards) {
  std::vector<std::string> result;
  if (cards.empty()) return result;
  result = cards[0].evidence;
  if (auto place = place_of(cards[0]); !place.empty()) result.push_back(std::move(place));
  result.push_back(fmt::format("likely causes: {}; or {}", cards[0].causes[0], cards[0].causes[1]));
  for (const auto& other : cards.subspan(1)) {
    if (other.confidence < 0.3 || other.evidence.empty()) continue;
    result.push_back(fmt::format("also {} (confidence {:.2g}): {}", other.kind, other.confidence,
                                 other.evidence[0]));
  }
  return result;
}

Message<wire::ProfileResult> profile_result(const metric_values& call,
                                            std::span<const kernel_metrics> kernels,
                                            const std::vector<std::string>& missing, double seconds,
                                            const roofline_position& position) {
  std::vector<named_value> counters;
  add_values(counters, {}, call);
  for (const auto& x : kernels.first(std::min(kernels.size(), most_named_kernels)))
    add_values(counters, x.kernel.substr(0, longest_kernel_name) + "/", x.values);
  bool available = !counters.empty();
  for (const auto& x : quantities_of(position))
    counters.push_back({std::string{x.name}, x.value, x.unit});
  auto told = choose(call, kernels);
  const auto& cards = told.cards;
  auto lines = lines_of(cards);
  if (kernels.size() > 1 && !lines.empty())
    lines[0] += fmt::format(" (of {})", told.kernel->kernel.substr(0, longest_kernel_name));
  return build<wire::ProfileResult>([&](wire::ProfileResult::Builder out) {
    out.setAvailable(available);
    auto list = out.initCounters(static_cast<unsigned>(counters.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setName(counters[i].name);
      list[i].setValue(counters[i].value);
      list[i].setUnit(std::string{counters[i].unit});
    }
    auto lacks = out.initMissing(static_cast<unsigned>(missing.size()));
    for (unsigned i = 0; i < lacks.size(); ++i) lacks.set(i, missing[i]);
    auto card = out.initCard();
    card.setBottleneck(cards.empty() ? "unknown" : std::string{cards[0].kind});
    card.setConfidence(cards.empty() ? 0 : cards[0].confidence);
    auto evidence = card.initEvidence(static_cast<unsigned>(lines.size()));
    for (unsigned i = 0; i < evidence.size(); ++i) evidence.set(i, lines[i]);
    auto next = card.initNextActions(cards.empty() ? 0 : 1);
    if (!cards.empty()) next.set(0, std::string{cards[0].action});
    out.setSeconds(seconds);
  });
}

} // namespace kernelmill
