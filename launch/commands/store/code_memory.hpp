#pragma once

#include <memory>

#include "storage/export/contamination.hpp"

namespace kernelmill::commands {

/// Compares code as the retriever's leak guard does, by an index of near duplicates.
std::shared_ptr<exports::code_memory> make_code_memory();

} // namespace kernelmill::commands
