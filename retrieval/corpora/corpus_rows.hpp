#pragma once

// Rows of published corpora, and of a user's own file, as kernels that prompts may show. Columns
// are those that their publishers gave them:
//
//   kernelbook   python_code, triton_code; module_name or entry_point, repo_name, licenses, uuid
//   sakana       PyTorch_Code_Module, CUDA_Code, Correct; Op_Name, Kernel_Name, Level_ID, Task_ID,
//                CUDA_Speedup_Native
//   ndjson       kernel; id, task, reference, language, backend, operator_family, speedup, device,
//                date, origin, licence, source, correct
//
// The columns before the semicolon must be there; of the others a row may lack any, or hold null,
// and numbers may be texts. Columns that are not named are ignored.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "messages/error.hpp"
#include "retrieval/corpora/kernel_example.hpp"
#include "retrieval/corpora/row_file.hpp"

namespace kernelmill {

enum class corpus_shape : unsigned char { kernelbook, sakana, ndjson };

struct corpus_kernel {
  kernel_example kernel;
  std::optional<bool> correct; ///< as its corpus says; nothing: it does not say
  std::string model;           ///< that wrote it; empty: not known
};

/// The kernel of a row, or what is wrong with it: `the column "CUDA_Code" holds no text`. Ids begin
/// with the source whose licence counts: "kernelbook/17".
tl::expected<corpus_kernel, std::string> kernel_of_row(corpus_shape shape, const file_row& row);

/// The level of KernelBench that the kernel's task is of; 0: of none.
uint32_t kernelbench_level(const std::string& task);

} // namespace kernelmill
