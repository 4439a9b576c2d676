#pragma once

// The task that tests of tools around device code take.

#include <cstdlib>
#include <string>

#include "gpu/task/task.hpp"

namespace kernelmill {

inline task_ptr row_sum() {
  auto loaded = load_task(std::string{std::getenv("KERNELMILL_SOURCE_DIR")} + "/configs/tasks",
                          "native/row_sum");
  judging_terms terms;
  terms.backend = "cuda";
  terms.contract = contract_kind::device;
  return *on_terms(**loaded, terms);
}

} // namespace kernelmill
