#include "launch/commands/judge/left_bundle.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "actors/governance/calls_verdict.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/commands/options.hpp"
#include "launch/judging/replaying.hpp"
#include "launch/machine/fingerprint.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

// Arguments, how results are shown, and where something lies on this machine: neither is what the
// command did.
constexpr std::array not_of_the_work = {"FILE",   "--bundle", "--json", "--color",
                                        "--root", "--python", "--svg",  "--seed"};

bool is_of_the_work(const std::string& name) {
  return std::find(not_of_the_work.begin(), not_of_the_work.end(), name) == not_of_the_work.end();
}

json machine_facts(const chosen_backend& machine, const std::vector<sandbox_layer>& layers,
                   const task& what, const std::string& toolchain, double at) {
  json fingerprint = {{"opening", 0}, {"at", at}};
  fingerprint.update(machine_fingerprint(machine, toolchain, machine.python));
  auto sandbox = json::array();
  for (const auto& x : layers)
    sandbox.push_back({{"name", x.name},
                       {"state", x.state == layer_state::active   ? "active"
                                 : x.state == layer_state::weaker ? "weaker"
                                                                  : "missing"},
                       {"detail", x.detail}});
  auto tasks = json::array();
  if (!what.id.empty()) tasks.push_back({{"id", what.id}, {"digest", what.digest}});
  return {{"fingerprints", json::array({std::move(fingerprint)})},
          {"sandbox", std::move(sandbox)},
          {"slots", json::array({hardware_text(machine)})},
          {"toolchain", toolchain},
          {"tasks", std::move(tasks)}};
}

} // namespace

left_bundle::left_bundle(const invocation& in, std::string command)
    : in_(&in), command_(std::move(command)), started_(seconds_since_1970()) {
  // nop
}

void add_listings(const inspecting::inspected& x, bundles::tool_words& to) {
  if (!x.compiled) return;
  to.listings = inspecting::listing_documents(x);
  to.texts = inspecting::listing_texts(x);
}

expected<left_bundle> left_bundle::begin(const invocation& in, std::string command) {
  if (in.has("--bundle")) KM_TRY(bundles::check_free_folder(in.value("--bundle")));
  return left_bundle{in, std::move(command)};
}

// The command with what was typed, on the candidate that is in the bundle.
json left_bundle::again() const {
  auto file = std::filesystem::path{in_->value("FILE")}.filename().string();
  if (file == "-") file = "candidate/source.txt";
  json words = {"kernelmill"};
  for (size_t at = 0; at < command_.size();) {
    auto end = std::min(command_.find(' ', at), command_.size());
    words.push_back(command_.substr(at, end - at));
    at = end + 1;
  }
  words.push_back(file);
  for (const auto& [name, values] : in_->values) {
    if (!in_->was_typed(name) || !is_of_the_work(name)) continue;
    for (const auto& value : values) {
      words.push_back(name);
      if (!value.empty()) words.push_back(value);
    }
  }
  auto seed = seed_hex(facts.open()->getEvaluation());
  if (command_ == "eval" && !seed.empty()) words.insert(words.end(), {"--seed", seed});
  bool report = facts.open()->getCandidateSha256().size() == 0;
  return {{"command", std::move(words)},
          {"needs", report ? "the file " + file
                           : "candidate/source.txt as " + file +
                                 ", the task and a machine of the same kind"}};
}

expected<void> left_bundle::leave(const offered_candidate& x, const chosen_backend& machine,
                                  const std::vector<sandbox_layer>& layers) {
  if (!wanted()) return {};
  auto toolchain = std::string{facts.open()->getBuild().getToolchain().cStr()};
  return write(&x, machine_facts(machine, layers, *x.what, toolchain, started_));
}

expected<void> left_bundle::leave_report() {
  return wanted() ? write(nullptr, json::object()) : expected<void>{};
}

expected<void> left_bundle::write(const offered_candidate* x, json machine) {
  bundles::command_material material;
  material.command = command_;
  material.facts = facts;
  material.verdict = verdict ? *verdict : open_verdict({}, {});
  if (x != nullptr) material.source = x->parsed.kernel;
  if (x != nullptr) material.task_prompt = prompt_of(*x);
  material.started_at = started_;
  material.ended_at = seconds_since_1970();
  material.of = {command_, std::move(machine), json::object(), build_id(), again()};
  material.tools = std::move(tools);
  material.tools.output = std::move(output);
  material.reports = std::move(reports);
  auto made = bundles::leave_command_bundle(material, in_->value("--bundle"));
  KM_TRY(made);
  cli::talk(fmt::format("bundle: {}, {}", in_->value("--bundle"), counted(made->files, "file")));
  return {};
}

} // namespace kernelmill::commands
