#include <cmath>
#include <ctime>

#include "launch/analysis/bundle/documents.hpp"
#include "messages/base/clock.hpp"
#include "messages/identity.hpp"
#include "messages/json.hpp"
#include "messages/judged.hpp"

namespace kernelmill::bundles {

namespace {

json part(const json& from, const char* key) {
  return from.is_object() && from.contains(key) ? from[key] : json(nullptr);
}

void copy_without(json& to, const json& from, const char* key,
                  std::initializer_list<const char*> private_keys) {
  auto section = part(from, key);
  if (section.is_null()) return;
  if (section.is_object())
    for (const auto* name : private_keys) section.erase(name);
  to[key] = std::move(section);
}

json replay_pack(const std::string& what, const run_facts& of) {
  return document_of({{"run_id", what},
                      {"replay_version", "kernelmill_replay_v1"},
                      {"image_digest", nullptr},
                      {"git_snapshot", of.program},
                      {"seed_pack",
                       {{"global_seed", part(part(of.config, "run"), "seed")},
                        {"input_seed", "in the records: each evaluation has its own"}}},
                      {"hardware_fingerprint_ref", "meta/hardware_fingerprint.json"},
                      {"input_snapshot_ref", nullptr},
                      {"task_ref", "meta/task_spec_full.json"},
                      {"commands_ref", "replay/command.json"},
                      {"required_artifacts", {"manifest.json", "summary.json", "events.jsonl"}}});
}

} // namespace

json document_of(json fields) {
  json result = {{"schema_version", contract_version}};
  result.update(fields);
  return result;
}

json not_run(const char* reason) {
  return document_of({{"status", "not_run"}, {"reason", reason}});
}

expected<void> put_json(const file_put& put, const std::string& path, const json& x) {
  return put(path, x.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

std::string run_id(wire::TurnRecord::Reader x) {
  auto e = x.getEpisode();
  return std::string{e.getRun().cStr()} + "/" +
         short_name({{}, {}, e.getGroup(), e.getMember()}, x.getTurn());
}

std::string time_or_nothing(double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0 || seconds > 1e11) return {};
  return utc_text(static_cast<std::time_t>(seconds));
}

json gate_word(wire::TurnRecord::Reader x, std::string_view gate) {
  for (auto g : x.getVerdict().getGates())
    if (std::string_view{g.getName().begin(), g.getName().size()} == gate)
      return enum_name(capnp::DynamicEnum{g.getStatus()});
  return "not_run";
}

json reward_or_null(wire::TurnRecord::Reader x, const run_facts& of) {
  auto verdict = x.getVerdict();
  bool asked = of.again.is_null() || verdict.getOutcome() != wire::Outcome::OPEN;
  if (!asked || !is_paid(verdict) || !std::isfinite(verdict.getReward())) return nullptr;
  return verdict.getReward();
}

std::string status_of(wire::TurnRecord::Reader x) {
  switch (x.getVerdict().getOutcome()) {
    case wire::Outcome::ACCEPTED: return "ok";
    case wire::Outcome::REJECTED: return "failed";
    case wire::Outcome::OPEN: return "open";
    case wire::Outcome::INFRASTRUCTURE: break;
  }
  return "error";
}

std::string candidate_status(wire::TurnRecord::Reader x) {
  auto facts = x.getFacts();
  if (x.getCandidateSha256().size() == 0) return "draft";
  if (!facts.getBuild().getCompiled()) return "build_failed";
  if (x.getVerdict().getOutcome() == wire::Outcome::OPEN) return "build_passed";
  if (x.getVerdict().getOutcome() != wire::Outcome::ACCEPTED) return "eval_failed";
  return facts.getEvaluation().getTiming().getMeasured() ? "benchmarked" : "eval_passed";
}

std::string candidate_id(std::string_view sha256) {
  return sha256.empty() ? std::string{} : "candidate_" + std::string{sha256.substr(0, 16)};
}

std::string vendor_of(wire::TurnRecord::Reader x) {
  auto facts = x.getFacts();
  std::string_view backend = facts.getBackend().cStr();
  std::string_view device = facts.getEvaluation().getDevice().cStr();
  if (backend == "hip") return device.ends_with("hip on nvidia") ? "nvidia" : "amd";
  return backend == "cuda" ? "nvidia" : "cpu";
}

json fingerprint_at(const run_facts& of, double at) {
  auto all = part(of.manifest, "fingerprints");
  json result;
  if (all.is_array())
    for (const auto& x : all)
      if (result.is_null() ||
          (x.is_object() && x.value("at", json{}).is_number() && x["at"].get<double>() <= at))
        result = x;
  if (result.is_object()) return result;
  return not_run(of.again.is_null() ? "the run was made by a version that kept none"
                                    : "the report does not say on which machine it was made");
}

json shared_config(const json& config) {
  json result = json::object();
  result["seed"] = part(part(config, "run"), "seed");
  copy_without(result, config, "tasks", {"root"});
  copy_without(result, config, "compile", {"compiler", "cache", "cache_dir"});
  copy_without(result, config, "evaluation", {"python", "cache", "cache_dir"});
  for (const auto* key : {"episode", "reward", "advantage", "profile"})
    copy_without(result, config, key, {});
  auto policy = part(config, "policy");
  for (const auto* key : {"kind", "model", "sampling", "tokens"})
    if (auto x = part(policy, key); !x.is_null()) result["policy"][key] = x;
  return result;
}

expected<void> put_meta(const std::string& what, const run_facts& of, double at,
                        const std::string& folder, const file_put& put) {
  auto tasks = part(of.manifest, "tasks");
  KM_TRY(put_json(put, folder + "meta/hardware_fingerprint.json", fingerprint_at(of, at)));
  KM_TRY(put_json(put, folder + "meta/doctor_report.json",
                  document_of({{"sandbox", part(of.manifest, "sandbox")},
                               {"slots", part(of.manifest, "slots")},
                               {"toolchain", part(of.manifest, "toolchain")}})));
  KM_TRY(put_json(
      put, folder + "meta/task_spec_full.json",
      document_of({{"tasks", tasks.is_null() ? json::array() : tasks},
                   {"files", not_run("a store keeps digests of tasks, not their files")}})));
  KM_TRY(put_json(put, folder + "meta/config.json", shared_config(of.config)));
  KM_TRY(put_json(put, folder + "replay/command.json",
                  of.again.is_null()
                      ? document_of({{"command", {"kernelmill", "replay", "runs/" + what}},
                                     {"needs", "the run's store, its tasks and a machine of the "
                                               "same kind"}})
                      : document_of(of.again)));
  KM_TRY(put_json(put, folder + "replay/environment.json",
                  document_of({{"program", of.program},
                               {"toolchain", part(of.manifest, "toolchain")},
                               {"config_digest", part(of.manifest, "config_digest")}})));
  return put_json(put, folder + "replay/replay_pack.json", replay_pack(what, of));
}

} // namespace kernelmill::bundles
