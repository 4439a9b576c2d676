#pragma once

// The task that tests of tools around candidates take.

#include <cstdlib>
#include <string>

#include "gpu/task/task.hpp"

namespace kernelmill {

inline task_ptr row_sum(contract_kind contract = contract_kind::device,
                        const char* backend = "cuda") {
  auto loaded = load_task(std::string{std::getenv("KERNELMILL_SOURCE_DIR")} + "/configs/tasks",
                          "native/row_sum");
  judging_terms terms;
  terms.backend = backend;
  terms.contract = contract;
  return *on_terms(**loaded, terms);
}

} // namespace kernelmill
