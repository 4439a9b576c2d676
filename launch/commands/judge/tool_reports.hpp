#pragma once

// What ncu and compute-sanitizer found, for people and as documents.

#include <string>
#include <vector>

#include "gpu/inspect/card_lines.hpp"
#include "gpu/profiler/cards.hpp"
#include "gpu/profiler/ncu_report.hpp"
#include "gpu/profiler/roofline.hpp"
#include "gpu/profiler/sanitizer_report.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

nlohmann::ordered_json values_json(const metric_values& x);
nlohmann::ordered_json cards_json(const std::vector<bottleneck_finding>& cards);

/// REQUIRES: !cards.empty().
std::string card_text(const std::vector<bottleneck_finding>& cards);

/// A kernel of a report with what the rules say of it.
struct carded_kernel {
  ncu_kernel kernel;
  std::vector<bottleneck_finding> cards;
};

/// Whether lines of source would say more of a card.
bool wants_lines(const std::vector<carded_kernel>& kernels);

std::vector<carded_kernel> carded(const ncu_report& report);
void add_lines(const std::vector<listed_text>& texts, std::vector<carded_kernel>& kernels);

nlohmann::ordered_json ncu_document(const ncu_report& report,
                                    const std::vector<carded_kernel>& kernels,
                                    const device_roof& roof = {});

/// Its numbers with their units; what is not known is left out. Peaks alone are no position.
nlohmann::ordered_json roofline_json(const roofline_position& x);

std::string ncu_text(const std::vector<carded_kernel>& kernels, bool colour);

/// What to do where there is no profile.
const char* hint_of(ncu_problem x);

nlohmann::ordered_json sanitizer_document(const sanitizer_report& report);
std::string sanitizer_text(const sanitizer_report& report);

/// The tool came to its end and found nothing.
bool found_nothing(const sanitizer_report& report);

} // namespace kernelmill::commands
