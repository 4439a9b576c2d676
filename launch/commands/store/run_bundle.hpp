#pragma once

// A bundle of what is stored of a run: for `bundle make`, and for `run --bundle`.

#include "launch/analysis/bundle/make_bundle.hpp"
#include "launch/cli/command.hpp"
#include "launch/commands/place.hpp"

namespace kernelmill::commands {

struct wanted_bundle {
  std::string out;
  bool folder = false;
  bool proof = false;
  evp_pkey_st* key = nullptr;
};

/// Bundles what `at` names, as far as licences and --accept-terms let it be passed on. Errors:
/// those of bundles::make_bundle() and of the run's folder.
expected<bundles::made_bundle> make_run_bundle(const cli::invocation& in, const place& at,
                                               const wanted_bundle& wanted);

} // namespace kernelmill::commands
