#pragma once

// Whose fault it is that a source was not built. All that a compiler says can be the source's own
// words, so none decides: where the machine can have caused them, a source of ours that is built
// with the same flags says whether the machine builds at all.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/toolchain/compiler_run.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// What the words of a failed build show.
enum class build_evidence : unsigned char {
  source,  ///< an error in lines of the source, or a limit that it met: no machine causes that
  unclear, ///< errors elsewhere, as of the linker
  machine, ///< words that the machine's state can cause, errors in its own headers, or none at all
};

/// Whether a text has words of a machine that lacks something: space, memory, processes, a header.
/// In lines of `own_files` a missing header counts only where every toolchain should have it.
bool speaks_of_machine(std::string_view text, const std::vector<std::string>& own_files = {});

/// The evidence of a run that failed. `own_files` are the names that diagnostics give the source.
build_evidence evidence_of(const compiler_outcome& x, const std::vector<std::string>& own_files);

/// Whether a run did not make what it should.
bool has_failed(const compiler_outcome& x);

/// The evidence of a run; nothing where it made what it should, or could not be run.
std::optional<build_evidence> evidence_of(const expected<compiler_outcome>& x,
                                          const std::vector<std::string>& own_files);

struct attributed_build {
  /// Builds the source. Nothing: it was built, or something else than its compiler failed.
  std::function<std::optional<build_evidence>()> build;
  /// Builds a source of ours. Fails with class infrastructure.
  std::function<expected<void>()> control;
};

/// Builds and, unless the evidence is of the source, builds again behind a control: once, and up to
/// five times while the words are a machine's, since faults come and go. Fails where a control
/// does. Else the latest build is the answer, and a failure is the source's own.
expected<void> attribute(const attributed_build& x);

/// The fault of a machine that could not build `what`, a source of ours: it names what is missing
/// and the package that has it, where the words tell.
error fault_of_control(const compiler_outcome& control, const std::string& what);

/// What the run of a control comes to: success, or that fault.
expected<void> result_of_control(const expected<compiler_outcome>& control,
                                 const std::string& what);

} // namespace kernelmill
