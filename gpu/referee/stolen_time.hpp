#pragma once

#include <optional>

#include "gpu/process/machine_work.hpp"
#include "gpu/referee/evaluation.hpp"

namespace kernelmill {

/// Adds the condition `stolen` to a record, in percent, and a note to its timing where it is much.
/// It excuses nobody: a candidate could use up what the host grants.
void note_stolen(double percent, evaluation_record& record);

/// Looks at what the host of a virtual machine takes, from its beginning on. Thread safety: none.
class stolen_time {
public:
  void note(evaluation_record& record) const {
    note_stolen(stolen_percent(from_, machine_work_now()), record);
  }

private:
  std::optional<machine_work> from_ = machine_work_now();
};

} // namespace kernelmill
