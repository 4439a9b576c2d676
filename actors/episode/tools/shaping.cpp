#include "actors/episode/tools/shaping.hpp"

#include <algorithm>

namespace kernelmill {

namespace {

// Long ones are stored elsewhere, and a call that compares needs two short names.
constexpr size_t most_argument_bytes = 4096;

struct term_row {
  const char* name;
  int low, high; // of the sum over an episode, in thousandths
};
// In the order of shaping_ledger::term. gpu_rl has no limit to `revert_recovery`.
constexpr term_row terms[] = {
    {"tool_cost", -200, 0},          {"compare_use", 0, 20},     {"candidate_regression", -80, 0},
    {"best_known_supersede", 0, 30}, {"revert_recovery", 0, 30}, {"promote_closeout", 0, 20},
    {"near_miss_progress", 0, 30},
};

bool passed(wire::Verdict::Reader x, std::string_view gate) {
  for (auto one : x.getGates())
    if (std::string_view{one.getName().cStr()} == gate)
      return one.getStatus() == wire::GateStatus::PASS;
  return false;
}

// "c2" before "c10".
bool is_newer(const std::string& a, const std::string& b) {
  return std::pair{a.size(), std::string_view{a}} > std::pair{b.size(), std::string_view{b}};
}

} // namespace

// gpu_rl's figures; a tool that it lacks costs what the nearest of its own does.
int cost_of(tool_kind x) noexcept {
  switch (x) {
    case tool_kind::task_show: return 5;
    case tool_kind::knowledge_query: return 20;
    case tool_kind::note_strategy: return 0;
    case tool_kind::write_candidate: return 40;
    case tool_kind::patch_candidate: return 40;
    case tool_kind::test_patch: return 40; // and what it measures with
    case tool_kind::branch: return 20;
    case tool_kind::revert: return 30;
    case tool_kind::promote: return 20;
    case tool_kind::build: return 30;
    case tool_kind::run: return 50;
    case tool_kind::eval: return 50;
    case tool_kind::bench: return 30;
    case tool_kind::profile: return 30;
    case tool_kind::sanitize: return 30;
    case tool_kind::inspect: return 10;
    case tool_kind::compare: return 10;
    case tool_kind::replay: return 10;
    case tool_kind::submit: return 0;
  }
  return 0;
}

shaped_call shaped_call_of(const call_words& words, wire::TurnFacts::Reader facts,
                           wire::Verdict::Reader verdict) {
  shaped_call x;
  x.what = find_tool(words.tool);
  x.steps = words.steps;
  x.refused = words.status == "refused";
  x.input = words.input;
  x.output = words.output;
  if (!words.measured.empty()) {
    x.measured = find_tool(words.measured);
    x.built = facts.getBuild().getCompiled();
    x.accepted = verdict.getOutcome() == wire::Outcome::ACCEPTED;
    auto timing = facts.getEvaluation().getTiming();
    if (timing.getMeasured()) {
      x.low = timing.getSpeedup().getLow();
      x.high = timing.getSpeedup().getHigh();
    }
  }
  if (x.refused || x.what == nullptr || x.what->kind != tool_kind::compare ||
      words.arguments.size() > most_argument_bytes)
    return x;
  if (auto given = read_arguments(*x.what, words.arguments)) {
    x.left = given->text("left");
    x.right = given->has("right") ? given->text("right") : x.input;
  }
  return x;
}

void shaping_ledger::add(term x, int thousandths) {
  auto before = sums_[x];
  sums_[x] = std::clamp(before + thousandths, terms[x].low, terms[x].high);
  now_[x] += sums_[x] - before;
}

// As candidate_board learns it.
void shaping_ledger::learn(const shaped_call& x) {
  auto& known = candidates_[x.output];
  auto how = x.measured->kind;
  if (!x.built || (how != tool_kind::build && !x.accepted)) {
    known = {false, 0, 0};
    return;
  }
  if (how == tool_kind::build || how == tool_kind::run) return; // no hidden case was run
  known.right = true;
  if (how == tool_kind::bench && x.low > 0) known = {true, x.low, x.high};
}

// What is newer is held against what is older, whichever is named first, and each pair counts once:
// else a comparison would earn by how it is asked for.
void shaping_ledger::compare(std::string_view verb, const shaped_call& x) {
  if (x.left.empty() || x.right.empty() || x.left == x.right) return;
  auto pair = is_newer(x.left, x.right) ? std::pair{x.right, x.left} : std::pair{x.left, x.right};
  const auto &before = candidates_[pair.first], &after = candidates_[pair.second];
  if (!before.right || !after.right) return; // there is nothing to see yet
  if (!compared_.insert(pair).second) return;
  if (patched_ && (verb == "optimize" || verb == "reformulate")) add(compare_use, 20);
  int loss = 0, gain = 0;
  if (before.right == true && after.right == false) loss += 60;
  if (before.right == false && after.right == true) gain += 15;
  if (before.low > 0 && after.low > 0) {
    if (after.high < before.low) loss += 20;
    if (after.low > before.high) gain += 10;
  }
  add(regression, -loss);
  add(supersede, gain);
  regressed_ |= loss > 0;
}

void shaping_ledger::follow(std::string_view verb, const shaped_call& x) {
  switch (x.what->kind) {
    case tool_kind::write_candidate:
    case tool_kind::patch_candidate:
    case tool_kind::test_patch: patched_ |= !x.input.empty() && x.input != x.output; break;
    case tool_kind::branch: candidates_[x.output].right = candidates_[x.input].right; break;
    case tool_kind::revert:
      if (regressed_) add(recovery, 10);
      regressed_ = false;
      break;
    case tool_kind::promote: promoted_ = x.output; break;
    case tool_kind::compare: compare(verb, x); break;
    default: break;
  }
  if (x.measured != nullptr && x.measured->kind != tool_kind::submit) learn(x);
}

void shaping_ledger::close(std::string_view verb, wire::Verdict::Reader submitted,
                           const std::string& candidate) {
  bool accepted = submitted.getOutcome() == wire::Outcome::ACCEPTED;
  bool fast = passed(submitted, "performance"), original = passed(submitted, "originality");
  bool worked = patched_ && !compared_.empty();
  if (is_success(verb, accepted, original, fast))
    add(closeout, candidate == promoted_ ? 20 : 0);
  else if (passed(submitted, "correctness") && passed(submitted, "integrity") &&
           (original || !accepted) && !fast && worked)
    add(near_miss, 30);
}

std::vector<reward_part> shaping_ledger::take(std::string_view verb,
                                              std::span<const shaped_call> calls,
                                              const wire::Verdict::Reader* submitted) {
  if (kind_ == shaping_kind::none) return {};
  now_ = {};
  for (const auto& x : calls) {
    // What came too late, or when no step was left, took no step and costs nothing.
    bool free = x.refused && x.steps == 0;
    auto kind = x.what == nullptr ? tool_kind::inspect : x.what->kind;
    bool measures = x.measured != nullptr && kind == tool_kind::test_patch;
    if (!free) add(cost, -cost_of(kind) - (measures ? cost_of(x.measured->kind) : 0));
    if (!x.refused && x.what != nullptr) follow(verb, x);
    bool submits = x.measured != nullptr && kind == tool_kind::submit;
    if (submits && submitted != nullptr) close(verb, *submitted, x.output);
  }
  std::vector<reward_part> result;
  for (size_t i = 0; i < term_count; ++i)
    if (now_[i] != 0) result.push_back({terms[i].name, now_[i] / 1000.0, 1});
  return result;
}

calls_effect shaping_ledger::take(wire::TurnRecord::Reader turn,
                                  const wire::Verdict::Reader* submitted) {
  calls_effect result;
  std::vector<shaped_call> calls;
  auto word = [](capnp::Text::Reader x) { return std::string_view{x.begin(), x.size()}; };
  for (auto x : turn.getCalls()) {
    auto arguments = x.getArguments();
    calls.push_back(shaped_call_of(
        {word(x.getTool()), arguments.isInline() ? word(arguments.getInline()) : std::string_view{},
         word(x.getStatus()), word(x.getInput()), word(x.getOutput()), word(x.getMeasured()),
         x.getSteps()},
        x.getFacts(), x.getVerdict()));
    if (x.getMeasured() != "submit") add_critical(result, x.getVerdict());
  }
  result.shaping = take(turn.getFacts().getVerb().cStr(), calls, submitted);
  return result;
}

} // namespace kernelmill
