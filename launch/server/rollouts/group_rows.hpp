#pragma once

// A committed group as a trainer gets it: the rows of its form, and whether there is anything to
// learn from in them.

#include <string>

#include "actors/handoff/rollout_host.hpp"
#include "storage/artifacts.hpp"
#include "storage/export/licences/permits.hpp"
#include "storage/export/rows/forms.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::rollouts {

/// What reads it.
struct row_options {
  exports::form as = exports::form::rl;
  double temperature = 1; ///< that the run asked its policy for
};

/// A group that a licence keeps in has a flaw and no row. Errors: "not_found" when the group has no
/// record; those of the store and of artifacts.
expected<handoff::group_rows> read_rows(const store& from, const artifact_store& artifacts,
                                        const exports::permits& may, const std::string& run,
                                        uint32_t group, const row_options& options);

/// The forms whose rows a trainer learns from, for messages: "rl, trl, verl, ...".
std::string form_names();

/// A form of whole groups by its name. Errors: "bad_request".
expected<exports::form> trainer_form(const std::string& name);

} // namespace kernelmill::rollouts
