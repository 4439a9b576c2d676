#pragma once

#include <optional>

#include "gpu/process/processor_time.hpp"
#include "gpu/referee/evaluation.hpp"

namespace kernelmill {

/// Percent of the processors' time of which a timing says in its note that the host took it.
inline constexpr double plainly_stolen = 2;

/// Adds the condition `stolen` to a record, in percent, and a note to its timing where it is much.
/// It excuses nobody: a candidate could use up what the host grants.
void note_stolen(double percent, evaluation_record& record);

/// Looks at what the host of a virtual machine takes, from its beginning on. Thread safety: none.
class stolen_time {
public:
  void note(evaluation_record& record) const {
    note_stolen(stolen_percent(from_, processor_time_now()), record);
  }

private:
  std::optional<processor_time> from_ = processor_time_now();
};

} // namespace kernelmill
