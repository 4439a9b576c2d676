#pragma once

// What differs between two turns, grouped: configuration, prompt, answer, code, compiler, verdict,
// cases, times, reward, findings. The document is what --json prints; a group has
//   "group"   its name
//   "equal"   whether nothing of it differs
//   "values"  [{"key", "a", "b"}] that differ; times and parts of the reward always
//   "diff"    of the group's text, as `diff -u` writes it; empty when it is equal

#include <string>
#include <vector>

#include "messages/base/json_value.hpp"
#include "messages/error.hpp"
#include "messages/lineage.capnp.h"
#include "storage/artifacts.hpp"

namespace kernelmill::study {

using json = nlohmann::ordered_json;

struct compared_turn {
  std::string name; ///< "RUN/g3.e1.t2"
  wire::TurnRecord::Reader record;
  const artifact_store* artifacts = nullptr;
  const json* config = nullptr; ///< of its run
};

/// Errors: those of the artifacts.
expected<json> compare_turns(const compared_turn& a, const compared_turn& b);

/// Keys whose values differ, as values of a group; nested keys are joined with dots. What names a
/// run and its folder is passed over.
json config_differences(const json& a, const json& b);

} // namespace kernelmill::study
