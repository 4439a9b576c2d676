#include "launch/import/gpu_rl.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include "messages/base/digest.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"
#include "storage/bundle/bundle_file.hpp"
#include "storage/files.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;
using bundle_json = nlohmann::ordered_json;

constexpr std::array bundle_files = {"manifest.json",           "summary.json",
                                     "prompt/task_spec.json",   "prompt/messages.json",
                                     "prompt/completion.txt",   "prompt/feedback.txt",
                                     "eval/eval_envelope.json", "correctness/correctness.json",
                                     "perf/benchmark.json",     "build/build_record.json",
                                     "candidate/source.txt",    "patches/unified_diff.patch"};
constexpr const char* own_component_prefix = "kernelmill."; // launch/analysis/bundle writes it
constexpr uintmax_t largest_bundle_file = uintmax_t{64} << 20;

/// The files of one bundle, by their names in it.
using bundle_folder = std::map<std::string, std::string>;

tl::unexpected<error> bad_import(const std::string& where, const std::string& why) {
  return configuration_error("bad_import", "failed to import " + where + ": " + why,
                             "name a run bundle of gpu_rl, a folder of them, or a bundle that "
                             "`kernelmill bundle make` wrote");
}

expected<bundle_json> parsed(const bundle_folder& x, const char* name, const std::string& where) {
  auto found = x.find(name);
  if (found == x.end()) return bundle_json::object();
  auto document = nests_deeper(found->second) ? bundle_json{}
                                              : bundle_json::parse(found->second, nullptr, false);
  if (document.is_discarded() || document.is_null())
    return bad_import(where + "/" + name, "it is no JSON");
  // A part that was not run has nothing to say.
  if (document.is_object() && document.value("status", bundle_json{}) == "not_run")
    return bundle_json::object();
  return document;
}

std::string text_at(const bundle_json& x, const char* key) {
  auto found = x.is_object() ? x.find(key) : x.end();
  return x.is_object() && found != x.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> number_at(const bundle_json& x, const char* key) {
  auto found = x.is_object() ? x.find(key) : x.end();
  if (!x.is_object() || found == x.end() || !found->is_number()) return std::nullopt;
  auto value = found->get<double>();
  return std::isfinite(value) ? std::optional{value} : std::nullopt;
}

std::string text_of_file(const bundle_folder& x, const char* name) {
  auto found = x.find(name);
  return found == x.end() ? std::string{} : found->second;
}

void read_gates(foreign_turn& to, const bundle_json& envelope) {
  constexpr std::array<std::pair<const char*, const char*>, 5> names = {
      {{"compile_gate", "build"},
       {"correctness_gate", "correctness"},
       {"determinism_gate", "determinism"},
       {"anti_hack_gate", "integrity"},
       {"perf_gate", "performance"}}};
  for (const auto& [theirs, ours] : names)
    if (auto status = text_at(envelope, theirs); !status.empty())
      to.gates.push_back({ours, status});
  to.compiled = text_at(envelope, "compile_gate") == "pass";
  to.correct = text_at(envelope, "correctness_gate") == "pass" && to.compiled &&
               text_at(envelope, "determinism_gate") != "fail";
  to.cheated = text_at(envelope, "anti_hack_gate") == "fail";
}

// A bundle of ours has gpu_rl's three, which say again what the gates say, and the run's own beside
// them: these alone add up to its reward.
void read_components(foreign_turn& to, const bundle_json& parts) {
  constexpr std::string_view prefix = own_component_prefix;
  if (!parts.is_object()) return;
  bool ours = false;
  for (const auto& [name, value] : parts.items()) ours = ours || name.starts_with(prefix);
  for (const auto& [name, value] : parts.items())
    if (value.is_number() && name.starts_with(prefix) == ours)
      to.components.emplace_back(ours ? name.substr(prefix.size()) : name, value.get<double>());
}

/// "triton 3.0.0, nvcc 12.8": a bundle of ours names its compiler whole.
std::string toolchain_of(const bundle_json& versions) {
  if (auto compiler = text_at(versions, "compiler"); !compiler.empty()) return compiler;
  std::string result;
  if (versions.is_object())
    for (const auto& [name, value] : versions.items())
      if (value.is_string())
        result += (result.empty() ? "" : ", ") + name + " " + value.get<std::string>();
  return result;
}

struct read_one {
  foreign_turn turn;
  std::string id, parent;
};

expected<read_one> turn_of_bundle(const bundle_folder& x, const std::string& where) {
  read_one result;
  auto manifest = parsed(x, "manifest.json", where);
  KM_TRY(manifest);
  auto spec = parsed(x, "prompt/task_spec.json", where);
  KM_TRY(spec);
  auto envelope = parsed(x, "eval/eval_envelope.json", where);
  KM_TRY(envelope);
  auto perf = parsed(x, "perf/benchmark.json", where);
  KM_TRY(perf);
  auto messages = parsed(x, "prompt/messages.json", where);
  KM_TRY(messages);
  result.id = text_at(*manifest, "run_id");
  result.parent = text_at(*manifest, "parent_run_id");
  auto& turn = result.turn;
  turn.task = text_at(*spec, "task_id");
  if (turn.task.empty()) turn.task = text_at(*manifest, "task_ref");
  if (result.id.empty() || turn.task.empty())
    return bad_import(where + "/manifest.json", "it has no run_id or no task_ref");
  turn.verb = text_at(*spec, "verb").empty() ? "optimize" : text_at(*spec, "verb");
  turn.operator_family = text_at(*spec, "operator_family");
  turn.backend = text_at(*manifest, "target_backend");
  turn.model = text_at(*manifest, "policy_pack");
  turn.contract = "program";
  if (messages->is_array())
    for (const auto& m : *messages)
      turn.prompt.emplace_back(text_at(m, "role"), text_at(m, "content"));
  if (turn.prompt.empty() && result.parent.empty())
    turn.prompt.emplace_back("user", text_at(*spec, "prompt"));
  turn.code = text_of_file(x, "candidate/source.txt");
  turn.answer = text_of_file(x, "prompt/completion.txt");
  if (turn.answer.empty()) turn.answer = text_of_file(x, "patches/unified_diff.patch");
  turn.feedback = text_of_file(x, "prompt/feedback.txt");
  read_gates(turn, *envelope);
  turn.reward = number_at(*envelope, "final_score");
  if (envelope->contains("reward_components"))
    read_components(turn, (*envelope)["reward_components"]);
  if (manifest->contains("tool_versions"))
    turn.toolchain = toolchain_of((*manifest)["tool_versions"]);
  turn.speedup = number_at(*perf, "speedup_vs_baseline");
  return result;
}

// -- finding bundles ----------------------------------------------------------------------------

using found_bundles = std::map<std::string, bundle_folder>; ///< by their place

expected<void> read_folder(const fs::path& folder, found_bundles& to) {
  bundle_folder files;
  for (const auto* name : bundle_files) {
    std::error_code status;
    auto path = folder / name;
    if (!fs::is_regular_file(path, status)) continue;
    if (fs::file_size(path, status) > largest_bundle_file || status)
      return bad_import(path.string(), "it is larger than 64 MiB");
    auto bytes = read_file(path.string());
    KM_TRY(bytes);
    files.emplace(name, std::move(*bytes));
  }
  to.emplace(folder.string(), std::move(files));
  return {};
}

expected<found_bundles> bundles_below(const std::string& path) {
  found_bundles result;
  std::error_code status;
  if (fs::exists(fs::path{path} / "manifest.json", status) &&
      !fs::exists(fs::path{path} / "turns", status)) {
    KM_TRY(read_folder(path, result));
    return result;
  }
  auto root =
      fs::exists(fs::path{path} / "turns", status) ? fs::path{path} / "turns" : fs::path{path};
  for (fs::directory_iterator i{root, status}, end; !status && i != end; i.increment(status))
    if (fs::exists(i->path() / "manifest.json", status)) KM_TRY(read_folder(i->path(), result));
  return result;
}

expected<found_bundles> bundles_in_archive(const std::string& path) {
  found_bundles result;
  auto done = bundles::read(path, {}, nullptr,
                            [&](const auto& file, std::string_view bytes) -> expected<void> {
                              std::string_view rest = file.path;
                              std::string place;
                              if (rest.starts_with("turns/"))
                                if (auto slash = rest.find('/', 6); slash != rest.npos) {
                                  place = rest.substr(0, slash);
                                  rest.remove_prefix(slash + 1);
                                }
                              for (const auto* name : bundle_files)
                                if (rest == name) result[place].emplace(name, bytes);
                              return {};
                            });
  KM_TRY(done);
  if (!done->damaged.empty()) return bad_import(path, done->damaged.front());
  if (result.size() > 1) result.erase(""); // of the whole
  return result;
}

/// Bundles whose parent is here go on with its episode.
std::vector<foreign_group> episodes_of(std::vector<read_one> all) {
  std::map<std::string, size_t> by_id;
  for (size_t i = 0; i < all.size(); ++i) by_id.emplace(all[i].id, i);
  std::vector<foreign_group> groups;
  std::map<std::string, size_t> numbers;
  std::map<std::string, std::pair<size_t, size_t>> open; ///< last turn's id to group and episode
  std::vector<bool> done(all.size());
  auto place = [&](size_t i) {
    auto& x = all[i];
    auto [at, fresh] = numbers.try_emplace(x.turn.task, groups.size());
    if (fresh) groups.push_back({x.turn.task, {}});
    auto found = open.find(x.parent);
    std::pair<size_t, size_t> where;
    if (found != open.end() && found->second.first == at->second) {
      where = found->second;
      open.erase(found);
    } else {
      groups[at->second].episodes.emplace_back();
      where = {at->second, groups[at->second].episodes.size() - 1};
    }
    auto& turns = groups[where.first].episodes[where.second].turns;
    x.turn.number = static_cast<uint32_t>(turns.size());
    open[x.id] = where;
    turns.push_back(std::move(x.turn));
    done[i] = true;
  };
  // Parents first; a circle of parents has no first, and is taken as it comes.
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < all.size(); ++i) {
      auto parent = by_id.find(all[i].parent);
      if (done[i] || (parent != by_id.end() && !done[parent->second])) continue;
      place(i);
      moved = true;
    }
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (!done[i]) place(i);
  return groups;
}

} // namespace

expected<foreign_bundles> read_gpu_rl_bundles(const std::string& path) {
  std::error_code status;
  if (!fs::exists(path, status))
    return configuration_error("not_found", "failed to import " + path + ": it is not there",
                               "name a folder, or a .tar.zst");
  auto found = fs::is_directory(path, status) ? bundles_below(path) : bundles_in_archive(path);
  KM_TRY(found);
  foreign_bundles result;
  std::vector<read_one> all;
  std::string digests;
  for (const auto& [where, files] : *found) {
    for (const auto& [name, bytes] : files) digests += sha256_hex(bytes);
    auto one = turn_of_bundle(files, where.empty() ? path : where);
    KM_TRY(one);
    all.push_back(std::move(*one));
  }
  result.sha256 = sha256_hex(digests);
  result.groups = episodes_of(std::move(all));
  return result;
}

} // namespace kernelmill
