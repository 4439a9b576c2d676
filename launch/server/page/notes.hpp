#pragma once

// What readers say of verdicts: notes.jsonl of the run's directory, append-only. A note that is
// removed gets a line that says so; nothing that was written is changed.

#include "launch/analysis/watch/world.hpp"

namespace kernelmill::page {

/// The notes that stand, in the order in which they came.
expected<watch::json> notes_of(const run_directory& run);

/// Adds a note: {turn: "g3.e1.t2", label: clean|reward_hack|rubric_leak|bug, quote, text}. Returns
/// it with its "id" and "at". Errors: "bad_request", those of the disk.
expected<watch::json> add_note(const run_directory& run, const watch::json& note);

/// Errors: "not_found".
expected<void> remove_note(const run_directory& run, const std::string& id);

} // namespace kernelmill::page
