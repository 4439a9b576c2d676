#include "launch/server/trackers/hook_rules.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "messages/base/counted.hpp"
#include "messages/fault.hpp"

namespace kernelmill::trackers {

namespace {

// Of fewer, a share says nothing.
constexpr uint64_t fewest_turns = 32;

} // namespace

hook_rules::hook_rules(hooks_section settings, std::string run, std::string directory, double now)
    : settings_(std::move(settings)), run_(std::move(run)), directory_(std::move(directory)),
      progress_at_(now) {
  // nop
}

void hook_rules::note(wire::Record::Reader x, double now) {
  progress_at_ = now;
  stands_still_ = false;
  if (x.isTurn()) note_turn(x.getTurn(), now);
  if (x.isEpisode()) ++episodes_;
  if (x.isRun() && x.getRun().getState() != "running") note_end(x.getRun(), now);
}

void hook_rules::note_turn(wire::TurnRecord::Reader x, double now) {
  auto verdict = x.getVerdict();
  ++turns_;
  accepted_ += verdict.getOutcome() == wire::Outcome::ACCEPTED;
  infrastructure_.count += verdict.getOutcome() == wire::Outcome::INFRASTRUCTURE;
  findings_.count += verdict.getFindings().size() > 0;
  look_at_share(infrastructure_, settings_.infrastructure_share, "infrastructure_faults",
                "lost to faults of the machine or of a server", now);
  look_at_share(findings_, settings_.findings_share, "integrity_findings",
                "with integrity violations", now);
}

void hook_rules::look_at_share(share& x, double limit, const char* event, const char* what,
                               double now) {
  if (limit <= 0 || turns_ < fewest_turns) return;
  auto is = static_cast<double>(x.count) / static_cast<double>(turns_);
  if (is < limit / 2) x.told = false;
  if (is <= limit || x.told) return;
  x.told = true;
  tell(event, fmt::format("{:.1f} % of {} turns are {}", is * 100, turns_, what),
       {{"turns", turns_}, {"count", x.count}, {"share", is}, {"limit", limit}}, now);
}

void hook_rules::note_end(wire::RunRecord::Reader x, double now) {
  std::string state = x.getState();
  auto fault = fault_of(x.getFault());
  auto text = fmt::format("{} with {} and {}, {} of them accepted", state,
                          counted(episodes_, "episode"), counted(turns_, "turn"), accepted_);
  if (!fault.message.empty()) text += "; " + fault.message;
  tell("run_ended", text,
       {{"state", state},
        {"episodes", episodes_},
        {"turns", turns_},
        {"accepted", accepted_},
        {"infrastructure", infrastructure_.count},
        {"category", fault.category},
        {"message", fault.message},
        {"hint", fault.hint}},
       now);
}

void hook_rules::look_at_clock(double now) {
  auto limit = settings_.no_progress_minutes * 60;
  if (limit <= 0 || stands_still_ || now - progress_at_ < limit) return;
  stands_still_ = true;
  tell("no_progress",
       fmt::format("nothing was committed for {:.0f} s; `kernelmill explain {}` says why",
                   now - progress_at_, directory_),
       {{"seconds", now - progress_at_}, {"turns", turns_}}, now);
}

void hook_rules::look_at_nodes(const std::set<std::string>& names, uint64_t lost, double now) {
  if (nodes_known_ && lost > lost_)
    for (const auto& name : nodes_)
      if (!names.contains(name))
        tell("node_lost",
             fmt::format("the head has lost the node {}; {} are left", name, names.size()),
             {{"node", name}, {"nodes", names.size()}}, now);
  nodes_ = names;
  lost_ = lost;
  nodes_known_ = true;
}

void hook_rules::tell(const char* event, const std::string& text, json more, double now) {
  const auto& wanted = settings_.on;
  if (std::none_of(wanted.begin(), wanted.end(), [&](auto& x) { return x == "*" || x == event; }))
    return;
  json x = {{"event", event},
            {"at", now},
            {"run", run_},
            {"directory", directory_},
            {"text", fmt::format("kernelmill: {}: {}", run_, text)}};
  x.update(more);
  events_.push_back(std::move(x));
}

std::vector<json> hook_rules::take() {
  return std::exchange(events_, {});
}

} // namespace kernelmill::trackers
