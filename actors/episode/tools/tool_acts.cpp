// What each tool does with the candidates of an episode.

#include <algorithm>

#include <fmt/format.h>

#include "actors/episode/asking.hpp"
#include "actors/episode/clean_text.hpp"
#include "actors/episode/episode_records.hpp"
#include "actors/episode/patch/make_diff.hpp"
#include "actors/episode/patch/patch_kind.hpp"
#include "actors/episode/patch/text_patch.hpp"
#include "actors/episode/prompt_parts.hpp"
#include "actors/episode/tools/tool_words.hpp"
#include "actors/episode/tools/tools_mode.hpp"
#include "actors/episode/verb_checks.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr size_t max_candidate_bytes = 256 << 10; // as of an answer's kernel
constexpr int64_t most_examples = 5;
constexpr int64_t most_lines = 400;
constexpr size_t around_example = 640; // its title, provenance and fences
constexpr const char* file_name = "candidate";

source_language language_of(const task& x) {
  bool python = x.contract == contract_kind::torch || x.program.answer_file.ends_with(".py");
  return python ? source_language::python : source_language::cpp;
}

trial_plan plan_of(tool_kind x) {
  trial_plan plan;
  plan.evaluate = x != tool_kind::build;
  plan.visible_only = x == tool_kind::run;
  plan.timed = plan.coarse = x == tool_kind::bench;
  plan.profile = x == tool_kind::profile;
  if (x == tool_kind::sanitize) plan.sanitize = "always";
  return plan;
}

std::string cleaned(std::string_view text, size_t limit) {
  std::string result;
  append_clean(result, text, limit);
  return result;
}

// A kernel that the whole answer's limit cut would have no end by which a copy is known.
void append_within(std::string& out, wire::Example::Reader x, size_t most_bytes) {
  std::string text;
  auto room = most_bytes - std::min(most_bytes / 2, around_example);
  do { // of characters, which may have several bytes
    text.clear();
    auto reference = std::min<size_t>(x.getReference().size(), room / 3);
    append_example(text, x, room - reference, reference);
    room /= 2;
  } while (text.size() > most_bytes && room > 0);
  out += text;
}

tool_kind measure_named(std::string_view name) {
  const auto* x = find_tool(name);
  return x == nullptr ? tool_kind::build : x->kind;
}

} // namespace

// -- which candidate ------------------------------------------------------------------------------

// Null when the call names one that is not there, and the call is refused then.
board_candidate* tools_mode::candidate_of_act() {
  auto& a = *current_;
  const auto& wanted = a.arguments.text("candidate");
  auto* x = wanted.empty() ? board_.active() : board_.find(wanted);
  if (x == nullptr) {
    std::string name;
    append_clean(name, wanted, 40);
    refuse(wanted.empty() ? "there is no candidate yet; write_candidate makes one\n"
                          : "there is no candidate \"" + name +
                                "\"; `inspect` with the section "
                                "`history` lists them\n");
    return nullptr;
  }
  a.input = a.output = x->id;
  return x;
}

void tools_mode::perform() {
  auto kind = current_->what->kind;
  switch (kind) {
    case tool_kind::task_show: return show_task();
    case tool_kind::knowledge_query: return query_knowledge();
    case tool_kind::note_strategy: {
      const auto& a = current_->arguments;
      board_.note({cleaned(a.text("name"), 120), a.text("state"), cleaned(a.text("note"), 600)});
      return settle("ok", "noted\n");
    }
    case tool_kind::write_candidate: return write_candidate();
    case tool_kind::patch_candidate: return patch_candidate(false);
    case tool_kind::test_patch: return patch_candidate(true);
    case tool_kind::compare: return compare();
    default: break;
  }
  if (kind == tool_kind::submit && current_->arguments.text("candidate").empty())
    if (const auto* promoted = board_.promoted()) board_.activate(*promoted);
  auto* x = candidate_of_act();
  if (x == nullptr) return;
  switch (kind) {
    case tool_kind::branch: return branch(*x);
    case tool_kind::revert: return revert(*x);
    case tool_kind::promote: return promote(*x);
    case tool_kind::inspect: return inspect(*x);
    case tool_kind::replay: return replay(*x);
    case tool_kind::submit: return submit(*x);
    default: return measure(*x, kind);
  }
}

// -- looking --------------------------------------------------------------------------------------

void tools_mode::show_task() {
  std::string out;
  append_clean(out, episode_.first_prompt->user, limit());
  settle("ok", std::move(out));
}

void tools_mode::query_knowledge() {
  auto count = std::clamp<int64_t>(current_->arguments.number("count", 2), 1, most_examples);
  auto query = kernelmill::build<wire::RetrieveRequest>([&](wire::RetrieveRequest::Builder x) {
    x.setQuery(current_->arguments.text("query"));
    x.setCount(static_cast<uint32_t>(count));
    x.setExcludeTask(episode_.where.what->id);
    x.setExcludeReference(episode_.where.what->computation());
    x.setOperatorFamily(episode_.where.what->operator_family);
    x.setBackend(episode_.settings->backend);
    const auto& language = episode_.where.what->terms.language;
    if (language != "any") x.setLanguage(language);
  });
  episode_.enter(episode_phase::retrieving);
  auto tell = [this](const Message<wire::RetrieveResult>& found) {
    std::string out;
    auto view = found.open();
    auto examples = view->getExamples();
    for (auto kind : {"kernel", "card"})
      for (auto x : examples) {
        if (x.getKind() != kind) continue;
        append_within(out, x, limit() / examples.size());
        current_->examples.emplace_back(x.getId().cStr());
      }
    settle("ok", out.empty() ? "nothing was found\n" : std::move(out));
    go_on();
  };
  // As with the first prompt, what is not found loses nothing.
  episode_.ask<Message<wire::RetrieveResult>>(
      episode_.services->retriever, episode_.within_deadline(episode_.settings->commit_deadline),
      [tell](const caf::error&) { tell(Message<wire::RetrieveResult>{}); }, tell, atom::query_v,
      episode_.make_envelope(), query);
}

void tools_mode::inspect(const board_candidate& x) {
  const auto& a = current_->arguments;
  const auto& section = a.text("section");
  auto first = std::max<int64_t>(a.number("first_line", 1), 1);
  auto lines = std::clamp<int64_t>(a.number("lines", 100), 1, most_lines);
  std::string text;
  if (section == "source")
    text = *x.source;
  else if (section == "diff")
    text = x.patch.empty() ? "it has no patch\n" : x.patch;
  else if (section == "history")
    text = history_text(board_);
  else if (auto i = x.sections.find(section); i != x.sections.end())
    text = i->second;
  else
    text = "nothing is known yet; build, eval, bench, profile and sanitize find it out\n";
  auto head = x.id + ": " + state_line(x) + "\n";
  auto room = limit() - std::min(limit(), head.size() + 80); // of the line that says what is shown
  settle("ok", head + window(text, first, lines, room));
}

void tools_mode::compare() {
  const auto& a = current_->arguments;
  auto* left = board_.find(a.text("left"));
  auto* right = a.has("right") ? board_.find(a.text("right")) : board_.active();
  if (left == nullptr || right == nullptr)
    return refuse("there is no such candidate; `inspect` with the section `history` lists them\n");
  settle("ok", comparison_text(*left, *right, limit()));
}

// -- changing -------------------------------------------------------------------------------------

void tools_mode::note_change(board_candidate& x, const board_candidate& parent) const {
  x.patch = unified_diff(*parent.source, *x.source, file_name);
  x.patch_kind =
      patch_kind_of(*parent.source, *x.source, language_of(*episode_.where.what), parent.right, {});
}

void tools_mode::write_candidate() {
  auto& a = *current_;
  const auto& source = a.arguments.text("source");
  if (source.empty() || source.size() > max_candidate_bytes)
    return refuse(fmt::format("a source has 1 to {} bytes\n", max_candidate_bytes));
  if (auto bad = first_bad_byte(source); bad != std::string_view::npos)
    return refuse(fmt::format("byte {} of the source is NUL or no UTF-8\n", bad));
  auto* before = board_.active();
  auto parent = before == nullptr ? std::string{} : before->id;
  auto& x =
      board_.add(parent, source, parent.empty() ? "synthesized" : "working",
                 parent.empty() ? "synthesis" : "patch", cleaned(a.arguments.text("summary"), 400));
  if (before != nullptr) note_change(x, *before); // references to candidates stay valid
  a.output = x.id;
  a.transition = parent.empty() ? "branched" : "reformulated";
  settle("ok", fmt::format("{} is the active candidate now, {} bytes\n", x.id, source.size()));
}

void tools_mode::patch_candidate(bool measured) {
  auto& a = *current_;
  auto* from = candidate_of_act();
  if (from == nullptr) return;
  auto how = measured ? measure_named(a.arguments.text("measure")) : tool_kind::build;
  // A patch that cannot be measured is not applied: the two are one act.
  if (auto why = measured ? why_not(how, *from) : std::string{}; !why.empty()) return refuse(why);
  auto source = apply_patch(a.arguments.text("patch"), *from->source);
  if (!source)
    return refuse("the patch was not applied, and nothing was changed: " + source.error().message +
                  "\n");
  if (source->size() > max_candidate_bytes)
    return refuse(fmt::format("the result has more than {} bytes\n", max_candidate_bytes));
  auto& x = board_.add(from->id, std::move(*source), "patched", "patch",
                       cleaned(a.arguments.text("summary"), 400));
  note_change(x, *from);
  a.output = x.id;
  a.transition = "patch_applied";
  if (measured) return measure(x, how);
  settle("ok",
         fmt::format("{} is the active candidate now{}\n", x.id,
                     x.patch_kind == "no_op" ? "; nothing but comments and spaces differs" : ""));
}

void tools_mode::branch(board_candidate& from) {
  auto& a = *current_;
  auto source = *from.source;
  auto& x = board_.add(from.id, std::move(source), "branched", "branch",
                       cleaned(a.arguments.text("summary"), 400));
  candidate_board::inherit(x, from);
  a.output = x.id;
  a.transition = "branched";
  settle("ok", fmt::format("{} is a copy of {}, and the active candidate now\n", x.id, from.id));
}

void tools_mode::revert(board_candidate& to) {
  auto& a = *current_;
  auto* before = board_.active();
  if (before == &to) return refuse(to.id + " is the active candidate already\n");
  a.input = before->id;
  a.output = to.id;
  a.transition = "reverted";
  board_.mark(*before, "reverted");
  board_.activate(to);
  settle("ok", fmt::format("{} is the active candidate again: {}\n", to.id, state_line(to)));
}

void tools_mode::promote(board_candidate& x) {
  if (x.right != true || x.speedup.low <= 0)
    return refuse(x.id + " has not passed `bench`, so it cannot be promoted\n");
  board_.mark(x, "promoted");
  current_->transition = "promoted";
  settle("ok", x.id + " is promoted: " + state_line(x) + "\n");
}

// -- measuring ------------------------------------------------------------------------------------

std::string tools_mode::why_not(tool_kind how, const board_candidate& x) const {
  const auto& limits = episode_.settings->tools;
  if (how == tool_kind::submit) return {};
  auto used = used_now();
  if (how != tool_kind::build && used.gpu_seconds >= limits.gpu_seconds)
    return "the seconds of the machine that runs kernels are used up; build and submit go on\n";
  if (tells_hidden(how) && used.hidden >= limits.hidden_evaluations)
    return "the measurements on hidden cases are used up; run, build and submit go on\n";
  bool of_right = how == tool_kind::profile || how == tool_kind::sanitize;
  if (of_right && x.right != true)
    return x.id + " is not known to be right; eval or bench it first\n";
  return {};
}

void tools_mode::measure(board_candidate& x, tool_kind how) {
  auto& a = *current_;
  if (auto why = why_not(how, x); !why.empty()) return refuse(why);
  auto plan = how == tool_kind::submit ? episode_.full_trial() : plan_of(how);
  plan.number = static_cast<uint32_t>(acts_.size() + 1);
  auto& trial = *episode_.current;
  trial.forget_trial();
  trial.parsed.ok = true;
  trial.parsed.kernel = *x.source;
  // A measurement says nothing of labels: only a submission gives one.
  bool submits = how == tool_kind::submit;
  trial.parsed.diagnosis =
      submits ? trimmed(a.arguments.text("diagnosis")) : episode_.where.what->diagnosis;
  trial.parsed.evidence = submits ? evidence_lines(a.arguments.text("evidence"))
                                  : right_statements(*episode_.where.what);
  if (submits) trial.parsed.thought = parse_completion(*trial.text).thought;
  trial.candidate_sha256 = x.sha256;
  a.output = x.id;
  a.measure = how;
  a.measured = true;
  episode_.begin_trial(std::move(plan));
}

void tools_mode::end_trial(const Message<wire::Verdict>* verdict) {
  take_measurement(verdict);
  go_on();
}

void tools_mode::take_measurement(const Message<wire::Verdict>* verdict) {
  auto& a = *current_;
  auto& trial = *episode_.current;
  a.facts = trial.facts.empty() ? turn_facts(episode_) : trial.facts;
  if (verdict != nullptr) a.verdict = *verdict;
  a.gpu_seconds = trial.evaluation.open()->getSeconds() + trial.profile.open()->getSeconds();
  a.hidden = tells_hidden(a.measure);
  auto facts = a.facts.open();
  auto judged = a.verdict.open();
  auto& x = *board_.find(a.output);
  bool submits = a.measure == tool_kind::submit;
  if (verdict != nullptr && judged->getOutcome() == wire::Outcome::INFRASTRUCTURE) {
    lost_ = true;
    auto kept = *verdict;
    settle("lost", "the measurement broke down for a reason that has nothing to do with the "
                   "candidate\n");
    return finish_turn(kept);
  }
  auto words = words_of_measurement(tool_of(a.measure).name, *facts, *judged, limit());
  bool passed = verdict == nullptr || judged->getOutcome() == wire::Outcome::ACCEPTED;
  bool before = x.right == true;
  auto last = x.passed;
  board_.learn(x, tool_of(a.measure).name, *facts, *judged, words);
  const auto* parent = board_.find(x.parent);
  bool repaired =
      passed && tells_hidden(a.measure) && !before && parent != nullptr && parent->right == false;
  if (a.transition == "inspect_only" && a.measure != tool_kind::build)
    a.transition = repaired                                  ? "repaired"
                   : a.measure == tool_kind::bench && passed ? "benchmarked"
                                                             : "evaluated";
  else if (repaired)
    a.transition = "repaired";
  if (a.what->kind == tool_kind::replay)
    words = (last == passed ? "it came out as before: " : "it came out differently: ") + words;
  words = x.id + ": " + words;
  if (!submits) return settle(passed ? "ok" : "failed", std::move(words));
  submitted_ = true;
  auto kept = *verdict;
  settle(passed ? "ok" : "failed", std::move(words));
  // Calls behind the submission are told that they came too late.
  while (next_ < calls_.size()) {
    act late;
    late.call = calls_[next_++];
    late.begun = episode_.now();
    begin_act(std::move(late));
  }
  finish_turn(kept);
}

void tools_mode::replay(board_candidate& x) {
  if (x.measured_by.empty())
    return refuse(x.id + " was not measured yet, so there is nothing to repeat\n");
  auto how = measure_named(x.measured_by);
  measure(x, how == tool_kind::submit ? tool_kind::bench : how);
}

// One that is worse than another is shown the difference once before it counts.
void tools_mode::submit(board_candidate& x) {
  const auto* best = board_.best();
  bool worse = best != nullptr && best != &x && best->sha256 != x.sha256 &&
               (x.right != true || x.speedup.low < best->speedup.low);
  bool last = used_.steps >= episode_.settings->tools.steps || episode_.over_deadline();
  if (worse && !asked_ && !last && !current_->arguments.flag("confirm")) {
    asked_ = true;
    return settle("ok", "not handed in yet: " + best->id +
                            " is better as far as is known. Submit " + best->id + ", or submit " +
                            x.id + " again.\n" + comparison_text(*best, x, limit()));
  }
  measure(x, tool_kind::submit);
}

} // namespace kernelmill
