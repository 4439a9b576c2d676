#include "gpu/referee/stolen_time.hpp"

#include <fmt/format.h>

namespace kernelmill {

namespace {

constexpr double much = 2; // percent

} // namespace

void note_stolen(double percent, evaluation_record& record) {
  if (percent <= 0) return;
  record.conditions.push_back({"stolen", percent, "%"});
  auto& note = record.timing.note; // none where nothing was timed
  if (percent >= much && !note.empty())
    note += fmt::format("; the host of this virtual machine took {:.0f} % of its processors' time",
                        percent);
}

} // namespace kernelmill
