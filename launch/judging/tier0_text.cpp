#include "launch/judging/tier0_text.hpp"

#include <fmt/format.h>

#include "gpu/profiler/roofline.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/judging/verdict_text.hpp"

namespace kernelmill {

namespace {

// One line for each kernel, of counters that are named "KERNEL/METRIC".
std::string counters_text(wire::ProfileResult::Reader x) {
  std::string result, last;
  roofline_position unused; // has a line of its own
  for (auto c : x.getCounters()) {
    std::string name = c.getName().cStr();
    if (set_quantity(unused, name, 0)) continue;
    auto slash = name.rfind('/');
    auto kernel = slash == name.npos ? std::string{"call"} : name.substr(0, slash);
    if (slash != name.npos) name.erase(0, slash + 1);
    result += kernel == last ? ", " : (last.empty() ? "" : "\n") + cli::clean(kernel) + ": ";
    auto unit = std::string{c.getUnit().cStr()};
    result += fmt::format("{} {:.4g}{}{}", name, c.getValue(), unit.empty() ? "" : " ", unit);
    last = kernel;
  }
  return result.empty() ? result : result + "\n";
}

} // namespace

std::string tier0_text(wire::ProfileResult::Reader x) {
  std::string result = "what the build and the machine tell (tier 0):\n";
  auto numbers = counters_text(x);
  result += numbers.empty() ? "the build tells nothing of its kernels\n" : numbers;
  result += profile_text(x);
  for (auto line : x.getMissing()) result += "missing: " + cli::clean(line.cStr()) + "\n";
  return result;
}

} // namespace kernelmill
