#include "launch/analysis/library/kernel_library.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "launch/analysis/library/best_over_runs.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::library {

namespace {

using json = nlohmann::ordered_json;

std::string lower_case(std::string x) {
  std::transform(x.begin(), x.end(), x.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return x;
}

std::string text_at(const json& x, const char* key) {
  auto found = x.find(key);
  return found != x.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::string written_in(wire::TurnFacts::Reader facts) {
  if (facts.getContract() == "torch") return "python";
  return facts.getBackend() == "cpu" ? "cpp" : facts.getBackend().cStr();
}

/// What the manifest says of the session in which a turn was committed: its last fingerprint that
/// is not younger.
const json* session_of(const json& manifest, double at) {
  auto all = manifest.find("fingerprints");
  if (all == manifest.end() || !all->is_array()) return nullptr;
  const json* result = nullptr;
  for (const auto& x : *all)
    if (x.is_object() && (result == nullptr || x.value("at", 0.0) <= at)) result = &x;
  return result;
}

void add_conditions(kernel& to, const json& manifest) {
  if (const auto* session = session_of(manifest, to.committed_at)) {
    to.driver = text_at(*session, "driver_version");
    auto tools = session->value("tool_versions", json::object());
    to.program = text_at(tools, "kernelmill");
    // Of a head whose nodes judged, the versions are the head's own.
    if (session->value("judged_here", false))
      for (const char* name : {"compiler", "nvcc", "nvrtc", "torch", "triton"})
        if (auto version = text_at(tools, name); !version.empty()) to.versions[name] = version;
  }
  for (const auto& x : manifest.value("tasks", json::array())) {
    if (text_at(x, "id") != to.task) continue;
    to.task_digest = text_at(x, "digest");
    to.source = text_at(x, "source");
    to.licence = text_at(x, "licence");
  }
}

using kernel_key = std::tuple<std::string, std::string, std::string, std::string>;

kernel_key key_of(const kernel& x) {
  return {x.task, x.device, x.shape, x.baseline};
}

std::string baseline_of(wire::Timing::Reader x) {
  return x.getBaseline().size() > 0 ? x.getBaseline().cStr() : "eager";
}

/// That of describe(), at little cost: it is asked of every turn.
kernel_key key_of(wire::TurnRecord::Reader turn) {
  auto evaluation = turn.getFacts().getEvaluation();
  auto timing = evaluation.getTiming();
  return {turn.getEpisode().getTask().cStr(), evaluation.getDevice().cStr(),
          timing.getShape().cStr(), baseline_of(timing)};
}

} // namespace

kernel describe(wire::TurnRecord::Reader turn, const run_directory& run, const json& manifest) {
  auto facts = turn.getFacts();
  auto evaluation = facts.getEvaluation();
  auto timing = evaluation.getTiming();
  auto where = turn.getEpisode();
  kernel x;
  x.task = where.getTask().cStr();
  x.operator_family = facts.getOperatorFamily().cStr();
  x.backend = facts.getBackend().cStr();
  x.contract = facts.getContract().cStr();
  x.language = written_in(facts);
  x.device = evaluation.getDevice().cStr();
  x.shape = timing.getShape().cStr();
  x.baseline = baseline_of(timing);
  x.clock = timing.getClock().cStr();
  x.speedup = reporting::of_interval(timing.getSpeedup());
  x.samples = timing.getSamples();
  x.candidate_ms = timing.getCandidateMs();
  x.reference_ms = timing.getReferenceMs();
  x.run = run.name;
  x.path = run.path;
  x.turn = fmt::format("g{}.e{}.t{}", where.getGroup(), where.getMember(), turn.getTurn());
  x.turn_id = turn.getTurnId().cStr();
  x.model = turn.getCompletion().getModel().cStr();
  x.candidate_sha256 = turn.getCandidateSha256().cStr();
  x.committed_at = turn.getCommittedAt();
  x.toolchain = facts.getBuild().getToolchain().cStr();
  add_conditions(x, manifest);
  return x;
}

expected<void> kernels::add(const run_directory& run, const store& from) {
  if (is_imported(run)) return {};
  auto manifest = read_json(run.manifest_file());
  KM_TRY(manifest);
  auto shared = reporting::shared_turns_of(run);
  KM_TRY(shared);
  auto wanted_device = lower_case(which_.device);
  return from.scan_run(run.name, [&](wire::Record::Reader record) {
    if (!record.isTurn()) return true;
    auto turn = record.getTurn();
    auto speedup = reporting::counted_speedup(turn, *shared);
    if (!speedup || !(speedup->low > 0)) return true;
    if (!which_.task.empty() && turn.getEpisode().getTask() != which_.task.c_str()) return true;
    auto facts = turn.getFacts();
    if (!which_.operator_family.empty() &&
        facts.getOperatorFamily() != which_.operator_family.c_str())
      return true;
    auto device = lower_case(facts.getEvaluation().getDevice().cStr());
    if (device.find(wanted_device) == device.npos) return true;
    auto [known, is_first] = best_.try_emplace(key_of(turn));
    auto& best = known->second;
    bool is_better = is_first || speedup->low > best.speedup.low;
    if (is_better && which_.accept && !which_.accept(turn)) {
      if (is_first) best_.erase(known);
      return true;
    }
    uint64_t among = is_first ? 1 : best.among + 1;
    if (is_better) best = describe(turn, run, *manifest); // the manifest is searched: seldom
    best.among = among;
    return true;
  });
}

std::vector<kernel> best_over_runs(const std::vector<std::vector<kernel>>& runs) {
  std::map<kernel_key, kernel> best;
  for (const auto& run : runs)
    for (const auto& x : run) {
      auto [known, is_first] = best.try_emplace(key_of(x), x);
      if (is_first) continue;
      auto among = known->second.among + x.among;
      if (x.speedup.low > known->second.speedup.low) known->second = x;
      known->second.among = among;
    }
  std::vector<kernel> result;
  for (auto& [where, x] : best) result.push_back(std::move(x));
  return result;
}

std::vector<kernel> kernels::best() const {
  std::vector<kernel> result;
  for (const auto& [where, x] : best_) result.push_back(x);
  return result;
}

const kernel* kernels::fastest(const std::string& task, const std::string& device) const {
  const kernel* result = nullptr;
  for (const auto& [where, x] : best_)
    if (x.task == task && x.device.starts_with(device) &&
        (result == nullptr || x.assured_ms() < result->assured_ms()))
      result = &x;
  return result;
}

library_view read_library(const std::string& root, const store_opener& open, choice which) {
  kernels found{std::move(which)};
  library_view result;
  for (const auto& name : list_runs(root)) {
    auto read = [&]() -> expected<void> {
      auto run = find_run(root + "/" + name, root);
      KM_TRY(run);
      auto from = open(*run);
      KM_TRY(from);
      return found.add(*run, **from);
    };
    if (auto done = read(); !done) result.unreadable.push_back({name, done.error().message});
  }
  result.all = found.best();
  return result;
}

json to_json(const kernel& x) {
  return {{"task", x.task},
          {"operator_family", x.operator_family},
          {"device", x.device},
          {"shape", x.shape},
          {"backend", x.backend},
          {"contract", x.contract},
          {"language", x.language},
          {"baseline", x.baseline},
          {"best_speedup_lower", x.speedup.low},
          {"estimate", x.speedup.estimate},
          {"high", x.speedup.high},
          {"samples", x.samples},
          {"candidate_ms", x.candidate_ms},
          {"reference_ms", x.reference_ms},
          {"clock", x.clock},
          {"kernels", x.among},
          {"run", x.run},
          {"name", x.path.substr(x.path.rfind('/') + 1)},
          {"turn", x.turn},
          {"model", x.model},
          {"candidate_sha256", x.candidate_sha256},
          {"source", x.source},
          {"licence", x.licence},
          {"toolchain", x.toolchain},
          {"driver", x.driver},
          {"versions", x.versions},
          {"judged_by", x.program},
          {"committed_at", x.committed_at}};
}

} // namespace kernelmill::library
