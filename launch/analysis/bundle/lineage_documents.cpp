// Where a candidate came from: patches/ and candidate/.

#include "actors/episode/patch/make_diff.hpp"
#include "launch/analysis/bundle/documents.hpp"

namespace kernelmill::bundles {

namespace {

std::string plain(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

json or_null(const std::string& x) {
  return x.empty() ? json(nullptr) : json(x);
}

/// gpu_rl's word for ours.
const char* transition_kind(std::string_view ours) {
  if (ours == "reverted" || ours == "repaired") return ours == "reverted" ? "reverted" : "repaired";
  if (ours == "rewritten") return "reformulated";
  return ours == "none" ? "inspect_only" : "evaluated";
}

const char* patch_kind(std::string_view transition, std::string_view verb) {
  if (transition == "repeated") return "no_op";
  if (transition == "repaired") return "bug_fix";
  return verb == "optimize" ? "perf_transform" : "refactor";
}

size_t changed_lines(const std::string& diff) {
  size_t result = 0;
  for (size_t at = 0; at < diff.size();) {
    bool change = diff[at] == '+' || diff[at] == '-';
    bool header = diff.compare(at, 3, "+++") == 0 || diff.compare(at, 3, "---") == 0;
    result += change && !header;
    auto end = diff.find('\n', at);
    at = end == diff.npos ? diff.size() : end + 1;
  }
  return result;
}

json diff_summary(const std::string& diff) {
  return {{"changed_file_count", 1},
          {"changed_line_count", changed_lines(diff)},
          {"changed_files", {"candidate/source.txt"}},
          {"primary_target_file", "candidate/source.txt"},
          {"diff_ref", "patches/unified_diff.patch"}};
}

json state_of(const turn_material& x, const std::string& diff) {
  auto turn = x.record;
  auto sha256 = plain(turn.getCandidateSha256());
  return document_of(
      {{"candidate_id", or_null(candidate_id(sha256))},
       {"task_id", plain(turn.getEpisode().getTask())},
       {"source_run_id", run_id(turn)},
       {"parent_candidate_id", or_null(candidate_id(x.parent_sha256))},
       {"candidate_role", diff.empty() ? "working_candidate" : "patched_candidate"},
       {"origin_kind", diff.empty() ? "synthesis" : "patch"},
       {"status", candidate_status(turn)},
       {"lineage_depth", turn.getTurn()},
       {"active", turn.getTerminal()},
       {"artifact_refs", {"candidate/source.txt"}},
       {"diff_summary", diff.empty() ? json(nullptr) : diff_summary(diff)},
       {"metadata", {{"sha256", or_null(sha256)}, {"transition", plain(turn.getTransition())}}}});
}

json transition_of(const turn_material& x, const std::string& diff) {
  auto turn = x.record;
  auto ours = plain(turn.getTransition());
  auto verb = plain(turn.getFacts().getVerb());
  return document_of(
      {{"transition_id", plain(turn.getTurnId())},
       {"transition_kind", transition_kind(ours)},
       {"operation_kind", "eval"},
       {"task_id", plain(turn.getEpisode().getTask())},
       {"input_candidate_id", or_null(candidate_id(x.parent_sha256))},
       {"output_candidate_id", or_null(candidate_id(plain(turn.getCandidateSha256())))},
       {"source_run_ref", x.parent ? json(*x.parent) : json(nullptr)},
       {"target_run_ref", run_id(turn)},
       {"patch_kind", x.parent_sha256.empty() ? json(nullptr) : json(patch_kind(ours, verb))},
       {"changed_files", diff.empty() ? json::array() : json::array({"candidate/source.txt"})},
       {"status", candidate_status(turn)},
       {"diff_summary", diff.empty() ? json(nullptr) : diff_summary(diff)},
       {"metadata", {{"transition", ours}}}});
}

} // namespace

expected<void> put_lineage(const turn_material& x, const std::string& folder, const file_put& put) {
  std::string diff;
  if (!x.parent_sha256.empty() && !x.code.empty())
    diff = unified_diff(x.parent_code, x.code, "a/candidate/source.txt", "b/candidate/source.txt");
  auto turn = x.record;
  auto none = not_run(x.parent_sha256.empty() ? "it is the first candidate of its episode"
                                              : "the candidate is that of the turn before");
  auto kind = patch_kind(plain(turn.getTransition()), plain(turn.getFacts().getVerb()));
  KM_TRY(put_json(put, folder + "patches/request.json",
                  diff.empty() ? none
                               : document_of({{"patch_kind", kind},
                                              {"mode", "replace"},
                                              {"target_file", "candidate/source.txt"},
                                              {"actor_type", "agent"}})));
  if (!diff.empty()) KM_TRY(put(folder + "patches/unified_diff.patch", diff));
  KM_TRY(put_json(put, folder + "patches/applied_patch.json",
                  diff.empty() ? none
                               : document_of({{"patch_kind", kind},
                                              {"status", "applied"},
                                              {"diff_summary", diff_summary(diff)}})));
  KM_TRY(put_json(put, folder + "candidate/state.json", state_of(x, diff)));
  KM_TRY(put_json(put, folder + "candidate/transition.json", transition_of(x, diff)));
  return put(folder + "candidate/source.txt", x.code);
}

} // namespace kernelmill::bundles
