#include "actors/episode/tools/candidate_board.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "actors/episode/episode_records.hpp"
#include "actors/episode/prompt.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill {

namespace {

bool is_timed(const board_candidate& x) {
  return x.right == true && x.speedup.low > 0;
}

} // namespace

board_candidate& candidate_board::add(std::string parent, std::string source, std::string role,
                                      std::string origin, std::string summary) {
  board_candidate x;
  x.id = fmt::format("c{}", candidates_.size());
  if (const auto* from = find(parent)) x.depth = from->depth + 1;
  x.parent = std::move(parent);
  x.sha256 = sha256_hex(source);
  x.source = std::make_shared<const std::string>(std::move(source));
  x.role = std::move(role);
  x.origin = std::move(origin);
  x.summary = std::move(summary);
  active_ = x.id;
  return candidates_.emplace_back(std::move(x));
}

board_candidate* candidate_board::find(std::string_view id) {
  auto i = std::find_if(candidates_.begin(), candidates_.end(),
                        [&](const board_candidate& x) { return x.id == id; });
  return i == candidates_.end() ? nullptr : &*i;
}

const board_candidate* candidate_board::find(std::string_view id) const {
  return const_cast<candidate_board*>(this)->find(id);
}

void candidate_board::inherit(board_candidate& to, const board_candidate& from) {
  to.built = from.built;
  to.right = from.right;
  to.category = from.category;
  to.sections = from.sections;
}

void candidate_board::mark(board_candidate& x, std::string status) {
  if (status == "promoted") {
    for (auto& other : candidates_) other.promoted = false;
    x.promoted = true;
  }
  x.status = std::move(status);
  marks_.push_back({x.id, x.status, x.speedup.estimate, x.speedup.low, x.speedup.high});
}

const board_candidate* candidate_board::promoted() const {
  auto i = std::find_if(candidates_.begin(), candidates_.end(),
                        [](const board_candidate& x) { return x.promoted; });
  return i == candidates_.end() ? nullptr : &*i;
}

const board_candidate* candidate_board::best() const {
  const board_candidate* result = nullptr;
  for (const auto& x : candidates_) {
    if (x.right != true) continue;
    if (result == nullptr || x.speedup.low >= result->speedup.low) result = &x;
  }
  return result;
}

// One whose best case is worse than another's worst.
void candidate_board::settle_dominated() {
  double floor = 0;
  for (const auto& x : candidates_)
    if (is_timed(x)) floor = std::max(floor, x.speedup.low);
  for (auto& x : candidates_)
    if (is_timed(x) && x.speedup.high < floor && x.status == "benchmarked") mark(x, "dominated");
}

void candidate_board::note(strategy_note x) {
  fresh_notes_.push_back(x);
  auto i = std::find_if(strategies_.begin(), strategies_.end(),
                        [&](const strategy_note& known) { return known.name == x.name; });
  if (i == strategies_.end())
    strategies_.push_back(std::move(x));
  else
    *i = std::move(x);
}

void candidate_board::learn(board_candidate& x, std::string_view tool,
                            wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict,
                            std::string words) {
  x.measured_by = tool;
  x.built = facts.getBuild().getCompiled();
  x.passed = tool == "build" ? *x.built : verdict.getOutcome() == wire::Outcome::ACCEPTED;
  if (tool == "build" || x.built == false) {
    x.sections["build"] = std::move(words);
    if (x.built == false) x.right = false;
    return mark(x, x.built == true ? "build_passed" : "build_failed");
  }
  x.category = verdict.getCategory().cStr();
  bool accepted = verdict.getOutcome() == wire::Outcome::ACCEPTED;
  const char* section = tool == "profile" ? "profile" : tool == "sanitize" ? "sanitizer" : "result";
  x.sections[section] = std::move(words);
  if (tool == "run" && accepted) return mark(x, "build_passed"); // hidden cases were not run
  x.right = accepted;
  if (!accepted) {
    x.speedup = {};
    return mark(x, "eval_failed");
  }
  auto timing = facts.getEvaluation().getTiming();
  if (tool == "bench" && timing.getMeasured()) {
    auto speedup = timing.getSpeedup();
    x.speedup = {speedup.getEstimate(), speedup.getLow(), speedup.getHigh()};
    mark(x, "benchmarked");
    return settle_dominated();
  }
  mark(x, tool == "profile" ? "profiled" : x.speedup.low > 0 ? "benchmarked" : "eval_passed");
}

// -- records --------------------------------------------------------------------------------------

void candidate_board::write(wire::TurnRecord::Builder out, artifact_batch& artifacts) const {
  auto count = static_cast<unsigned>(candidates_.size() - first_fresh_);
  auto nodes = out.initCandidates(count);
  for (unsigned i = 0; i < count; ++i) {
    const auto& x = candidates_[first_fresh_ + i];
    nodes[i].setId(x.id);
    nodes[i].setParent(x.parent);
    nodes[i].setSha256(x.sha256);
    artifacts.put(nodes[i].initSource(), *x.source);
    nodes[i].setRole(x.role);
    nodes[i].setOrigin(x.origin);
    nodes[i].setDepth(x.depth);
    artifacts.put(nodes[i].initPatch(), x.patch);
    nodes[i].setPatchKind(x.patch_kind);
    nodes[i].setSummary(x.summary);
  }
  auto marks = out.initMarks(static_cast<unsigned>(marks_.size()));
  for (unsigned i = 0; i < marks.size(); ++i) {
    marks[i].setId(marks_[i].id);
    marks[i].setStatus(marks_[i].status);
    auto speedup = marks[i].initSpeedup();
    speedup.setEstimate(marks_[i].estimate);
    speedup.setLow(marks_[i].low);
    speedup.setHigh(marks_[i].high);
  }
  auto notes = out.initStrategies(static_cast<unsigned>(fresh_notes_.size()));
  for (unsigned i = 0; i < notes.size(); ++i) {
    notes[i].setName(fresh_notes_[i].name);
    notes[i].setState(fresh_notes_[i].state);
    notes[i].setNote(fresh_notes_[i].note);
  }
  out.setActive(active_);
}

void candidate_board::begin_turn() {
  first_fresh_ = candidates_.size();
  marks_.clear();
  fresh_notes_.clear();
}

void candidate_board::restore(wire::CandidateNode::Reader node) {
  auto& x = add(node.getParent(), *text_of(node.getSource()), node.getRole(), node.getOrigin(),
                node.getSummary());
  x.patch = *text_of(node.getPatch());
  x.patch_kind = node.getPatchKind().cStr();
  if (const auto* parent = find(x.parent); parent != nullptr && x.origin == "branch")
    inherit(x, *parent);
}

void candidate_board::restore(wire::CandidateMark::Reader from) {
  if (auto* x = find(from.getId().cStr())) mark(*x, from.getStatus());
}

// In the order of the calls: a branch has what was known of its parent then.
void candidate_board::restore(wire::TurnRecord::Reader record, size_t limit) {
  auto nodes = record.getCandidates();
  unsigned next = 0;
  for (auto call : record.getCalls()) {
    std::string_view output{call.getOutput().cStr()};
    while (next < nodes.size() && find(output) == nullptr && !output.empty())
      restore(nodes[next++]);
    auto* x = find(output);
    if (x == nullptr || call.getMeasured().size() == 0) continue;
    std::string_view tool{call.getMeasured().cStr()};
    learn(*x, tool, call.getFacts(), call.getVerdict(),
          words_of_measurement(tool, call.getFacts(), call.getVerdict(), limit));
  }
  while (next < nodes.size()) restore(nodes[next++]);
  for (auto x : record.getMarks()) restore(x);
  for (auto from : record.getStrategies())
    note({from.getName().cStr(), from.getState().cStr(), from.getNote().cStr()});
  active_ = record.getActive().cStr();
  begin_turn();
}

// -- words ----------------------------------------------------------------------------------------

std::string words_of_measurement(std::string_view tool, wire::TurnFacts::Reader facts,
                                 wire::Verdict::Reader verdict, size_t limit) {
  if (tool == "build" && facts.getBuild().getCompiled()) return "it builds\n";
  return verdict_text(facts, verdict, limit,
                      tool == "profile" ? profile_words::numbers : profile_words::card);
}

std::string state_line(const board_candidate& x) {
  std::string out = x.status;
  if (x.right) out += *x.right ? ", right" : ", not right";
  if (x.right == false && !x.category.empty()) out += " (" + x.category + ")";
  if (x.speedup.low > 0)
    out += fmt::format(", {:.3g}x ({:.3g}x to {:.3g}x)", x.speedup.estimate, x.speedup.low,
                       x.speedup.high);
  if (x.promoted) out += ", promoted";
  return out;
}

} // namespace kernelmill
