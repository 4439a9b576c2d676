#pragma once

// A turn, an episode or a run in the layout of gpu_rl's run bundles: the same folders, files and
// keys. A turn is what they call a run. What does not exist here, such as a sanitizer's report that
// no user asked for, says `"status": "not_run"` and why. docs/reference/bundles.md has the table.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/json_value.hpp"
#include "messages/error.hpp"
#include "messages/lineage.capnp.h"
#include "storage/artifacts.hpp"

namespace kernelmill::bundles {

using json = nlohmann::ordered_json;

/// Of gpu_rl's contracts, which our documents follow.
inline constexpr const char* contract_version = "1.0.0";

/// What the run's folder says, for all documents of a bundle.
struct run_facts {
  std::string run;
  json manifest;       ///< the run's own manifest.json
  json config;         ///< the run's own config.json
  std::string program; ///< "0.1.0 (442540487a3c)"
  json again = {};     ///< of a command: its words, to do it once more; null: of a run
};

/// What tools said beside a record, of a command that ran them. Null: it did not.
struct tool_words {
  json listings;  ///< "tri_view", "source_map_summary" and "source_ptx_sass_map": a document each
  json sanitizer; ///< the fields of sanitize/memcheck_summary.json
  json trace;     ///< the same of traces/system/summary.json
  json output;    ///< what the command prints with --json
  std::vector<std::pair<std::string, std::string>> texts; ///< files of build/ and their contents
};

/// A file that a tool wrote: reports/TOOL/NAME.
struct tool_report {
  std::string tool, name, text;
};

/// A turn with its texts.
struct turn_material {
  wire::TurnRecord::Reader record;
  std::vector<std::pair<std::string, std::string>> messages; ///< role and content that it added
  std::string task_prompt; ///< the first thing that a user said in the episode
  std::string answer, code, feedback;
  json trace;                        ///< its line of traces.jsonl
  std::optional<std::string> parent; ///< "g3.e1.t1": this candidate came from that turn's
  std::string parent_code, parent_sha256;
  std::vector<tool_report> reports;
  tool_words tools;
};

/// The texts of a turn, as far as its record names them: `record`, `messages`, `answer`, `code`,
/// `feedback`, `trace` and `reports`.
expected<turn_material> material_of(wire::TurnRecord::Reader turn, const artifact_store& artifacts);

using file_put = std::function<expected<void>(const std::string& path, const std::string& bytes)>;

/// Writes the folder of a turn; `folder` ends with a slash, or is empty.
expected<void> put_turn(const turn_material& x, const run_facts& of, const std::string& folder,
                        const file_put& put);

/// Documents of an episode or a run as a whole: `what` is "RUN" or "RUN/g3.e1".
struct whole_facts {
  std::string what;
  uint64_t episodes = 0, turns = 0, accepted = 0;
  std::string status;
  std::vector<json> events;
  std::vector<std::string> turn_names;
};
expected<void> put_whole(const whole_facts& x, const run_facts& of, const file_put& put);

// -- parts --------------------------------------------------------------------------------------

json document_of(json fields); ///< with schema_version in front
json not_run(const char* reason);
expected<void> put_json(const file_put& put, const std::string& path, const json& x);

std::string run_id(wire::TurnRecord::Reader x);         ///< "RUN/g3.e1.t2"
std::string time_or_nothing(double seconds_since_1970); ///< empty for 0
json gate_word(wire::TurnRecord::Reader x, std::string_view gate);
/// The reward, or null where there is none: a command that asked for no verdict has none.
json reward_or_null(wire::TurnRecord::Reader x, const run_facts& of);
std::string status_of(wire::TurnRecord::Reader x); ///< "ok", "failed" or "error"
std::string candidate_status(wire::TurnRecord::Reader x);
std::string candidate_id(std::string_view sha256);
std::string vendor_of(wire::TurnRecord::Reader x); ///< of what judged: "nvidia", "amd" or "cpu"

/// Of the session in which a turn that began at `at` was done; without one: not_run.
json fingerprint_at(const run_facts& of, double at);

/// The run's configuration without addresses, paths and names of keys.
json shared_config(const json& config);

/// meta/ and replay/, for turns and for wholes. `at`: when it was done.
expected<void> put_meta(const std::string& what, const run_facts& of, double at,
                        const std::string& folder, const file_put& put);

expected<void> put_evidence(const turn_material& x, const run_facts& of, const std::string& folder,
                            const file_put& put);
expected<void> put_lineage(const turn_material& x, const std::string& folder, const file_put& put);

/// What tools leave: perf/raw_timings.json, sanitize/, traces/, reports/, the listings of build/,
/// and of a command its own document.
expected<void> put_tools(const turn_material& x, const std::string& folder, const file_put& put);

} // namespace kernelmill::bundles
