#include "actors/episode/tools/tools_mode.hpp"

#include <algorithm>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/episode/clean_text.hpp"
#include "actors/episode/episode_records.hpp"
#include "actors/episode/tools/tool_words.hpp"
#include "actors/governance/judge.hpp"
#include "actors/policy_client/protocol/text_calls.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_calls = 32;        // of one answer; the rest is left out
constexpr uint32_t most_empty_turns = 6; // in a row; then the episode is blocked
constexpr size_t max_id = 64;

constexpr const char* no_call =
    "Your answer calls no tool. Call at least one, by its name, with a JSON object of arguments.\n";

// Ids go back to the server, which looks for them in the conversation.
bool is_plain_id(const std::string& x) {
  return !x.empty() && x.size() <= max_id &&
         std::all_of(x.begin(), x.end(), [](char c) { return c > ' ' && c < 0x7f && c != '"'; });
}

} // namespace

// -- before and after turns -----------------------------------------------------------------------

// Where the task gives a program to begin with, it is the first candidate.
void tools_mode::begin() {
  const auto& starter = episode_.where.what->starter;
  if (starter.empty() || episode_.turn > 0) return;
  board_.add({}, starter, "baseline", "baseline", {});
}

void tools_mode::add_to(wire::CompletionRequest::Builder x) const {
  if (episode_.settings->tools.calls == call_form::text) return;
  auto tools = all_tools();
  auto list = x.initTools(static_cast<unsigned>(tools.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setName(std::string{tools[i].name});
    list[i].setDescription(std::string{tools[i].description});
    list[i].setParameters(schema_of(tools[i]));
  }
  x.setToolChoice("auto");
}

// Of an episode that its group or a fault ended there is none.
void tools_mode::add_to(wire::EpisodeRecord::Builder x, const std::string& stop_reason) const {
  bool success = !episode_.turns.empty() && episode_.turns.back().accepted;
  if (stop_reason == "submitted")
    x.setTerminalState(success ? "success" : "failure");
  else if (!is_left_out(stop_reason))
    x.setTerminalState(stop_reason == "blocked" ? "blocked" : "budget_exhausted");
  x.setSteps(used_.steps);
  x.setGpuSeconds(used_.gpu_seconds);
}

bool tools_mode::did_anything(const std::vector<act>& acts) {
  return std::any_of(acts.begin(), acts.end(), [](const act& x) { return x.status != "refused"; });
}

void tools_mode::restore(wire::TurnRecord::Reader record) {
  board_.restore(record, limit());
  std::vector<act> acts;
  as_text_ = record.getCompletion().getCallsAsText();
  for (auto from : record.getCalls()) {
    used_.add(from.getSteps(), from.getGpuSeconds(), from.getHidden());
    act x;
    x.call = {from.getId().cStr(), from.getTool().cStr(), *text_of(from.getArguments())};
    x.observation = text_of(from.getObservation());
    x.status = from.getStatus().cStr();
    asked_ |= x.call.name == "submit" && x.status == "ok" && from.getMeasured().size() == 0;
    acts.push_back(std::move(x));
  }
  auto judged = record.getVerdict();
  bool submitted = judged.getOutcome() != wire::Outcome::OPEN;
  (void)shaping_.take(record, submitted ? &judged : nullptr);
  used_.steps += record.getIdleSteps();
  empty_turns_ = did_anything(acts) ? 0 : empty_turns_ + 1;
  remember(text_of(record.getCompletion().getText()), acts, *text_of(record.getFeedback()));
}

void tools_mode::committed(const std::shared_ptr<const std::string>& feedback) {
  used_ = used_now();
  used_.steps += idle_steps_;
  shaping_ = shaped_;
  empty_turns_ = did_anything(acts_) ? 0 : empty_turns_ + 1;
  remember(episode_.current->text, acts_, *feedback);
  board_.begin_turn();
  acts_.clear();
}

// A copy of what a query showed is as little earned as one of the prompt's examples.
void tools_mode::note_shown(const std::vector<act>& acts) {
  for (const auto& x : acts) {
    if (x.call.name != tool_of(tool_kind::knowledge_query).name || x.status != "ok") continue;
    auto shown =
        episode_.shown ? *episode_.shown : episode_.first_prompt->shown(*episode_.where.what);
    shown.show(*x.observation);
    episode_.shown = std::make_shared<const shown_code>(std::move(shown));
  }
}

// Calls that came as the server's own go back as such; else the turn is text on both sides.
void tools_mode::remember(std::shared_ptr<const std::string> answer, const std::vector<act>& acts,
                          const std::string& feedback) {
  note_shown(acts);
  auto& conversation = episode_.conversation;
  if (as_text_ || acts.empty()) {
    conversation.push_back({chat_role::assistant, std::move(answer), {}, {}});
    conversation.push_back(
        {chat_role::user, std::make_shared<const std::string>(feedback), {}, {}});
    return;
  }
  chat_part said{chat_role::assistant, std::move(answer), {}, {}};
  for (const auto& x : acts) said.calls.push_back(x.call);
  conversation.push_back(std::move(said));
  for (const auto& x : acts)
    conversation.push_back({chat_role::tool, x.observation, {}, x.call.id});
}

// -- one answer -----------------------------------------------------------------------------------

void tools_mode::take_answer() {
  acts_.clear();
  calls_.clear();
  problems_.clear();
  next_ = 0;
  submitted_ = lost_ = ended_ = false;
  as_text_ = true;
  if (episode_.current->fault.cls == fault_class::none)
    read_calls();
  else
    problems_ = "Your answer could not be read: " + episode_.current->fault.message + "\n";
  episode_.current->fault = {fault_class::none, {}, {}, {}};
  go_on();
}

void tools_mode::read_calls() {
  auto& current = *episode_.current;
  auto answer = current.completion.open();
  for (auto x : answer->getCalls())
    calls_.push_back({x.getId().cStr(), x.getName().cStr(), x.getArguments().cStr()});
  as_text_ = calls_.empty();
  if (as_text_) {
    auto read = parse_text_calls(*current.text);
    calls_ = std::move(read.calls);
    for (size_t i = 0; i < std::min<size_t>(read.problems.size(), 3); ++i)
      problems_ += "Not read as a call: " + read.problems[i] + "\n";
  }
  if (answer->getFinishReason() == "length")
    problems_ += "Your answer was cut off: it reached " + limit_reached(episode_, *answer) + ".\n";
  if (calls_.size() > most_calls) {
    problems_ += fmt::format("{} calls are too many for one answer; the first {} count.\n",
                             calls_.size(), most_calls);
    calls_.resize(most_calls);
  }
  std::vector<std::string> ids;
  for (size_t i = 0; i < calls_.size(); ++i) {
    auto& id = calls_[i].id;
    if (!is_plain_id(id) || std::find(ids.begin(), ids.end(), id) != ids.end())
      id = fmt::format("t{}c{}", episode_.turn, i);
    ids.push_back(id);
  }
}

tool_budget tools_mode::used_now() const {
  auto result = used_;
  for (const auto& x : acts_) result.add(x.steps, x.gpu_seconds, x.hidden);
  return result;
}

uint32_t tools_mode::steps_left() const {
  auto steps = used_now().steps;
  auto all = episode_.settings->tools.steps;
  return steps < all ? all - steps : 0;
}

// Does calls until one has to wait, or all are done. Acts that wait come back by end_trial().
void tools_mode::go_on() {
  while (!current_) {
    if (ended_) return;
    if (next_ == calls_.size()) return finish_turn();
    if (episode_.cancelled) return episode_.leave(wire::Outcome::INFRASTRUCTURE, cancellation());
    act x;
    x.call = calls_[next_++];
    x.begun = episode_.now();
    begin_act(std::move(x));
  }
}

// Leaves `current_` empty when the act is over.
void tools_mode::begin_act(act x) {
  current_ = std::move(x);
  auto& a = *current_;
  a.what = find_tool(a.call.name);
  a.steps = 1; // what is refused takes a step as well
  if (const auto* active = board_.active()) a.input = a.output = active->id;
  if (submitted_) a.steps = 0;
  if (submitted_) return refuse("the episode has ended with the submission before this call\n");
  if (a.what == nullptr) {
    std::vector<std::string_view> names;
    for (const auto& one : all_tools()) names.push_back(one.name);
    std::string name;
    append_clean(name, a.call.name, 60);
    return refuse(
        fmt::format("there is no tool \"{}\"; there are {}\n", name, fmt::join(names, ", ")));
  }
  if (a.what->steps > steps_left())
    return refuse(fmt::format("{} takes {} steps and {} are left; submit takes none\n",
                              a.what->name, a.what->steps, steps_left()));
  auto arguments = read_arguments(*a.what, a.call.arguments);
  if (!arguments) return refuse(arguments.error().message + "\n");
  a.arguments = std::move(*arguments);
  if (a.what->kind != tool_kind::submit && episode_.over_deadline())
    return refuse("the time of the episode is over\n");
  a.steps = a.what->steps;
  perform();
}

void tools_mode::settle(std::string status, std::string words) {
  auto& a = *current_;
  a.status = std::move(status);
  if (a.status == "refused") {
    a.output = a.input;
    a.transition = "inspect_only";
    a.steps = std::min<uint32_t>({a.steps, 1, steps_left()});
  }
  a.seconds = episode_.seconds_since(a.begun);
  std::string out;
  if (acts_.empty() && !as_text_) append_clean(out, problems_, limit());
  if (a.status != "ok") out += "[" + a.status + "] ";
  append_clean(out, words, limit());
  if (out.back() != '\n') out += '\n';
  auto used = used_now();
  used.add(a.steps, a.gpu_seconds, a.hidden);
  if (!submitted_) out += budget_line(board_, used, episode_.settings->tools);
  a.observation = std::make_shared<const std::string>(std::move(out));
  acts_.push_back(std::move(a));
  current_.reset();
}

std::string tools_mode::joined_observations() const {
  std::string out;
  if (as_text_ || acts_.empty()) append_clean(out, problems_, limit());
  for (const auto& x : acts_) {
    std::string name;
    append_clean(name, x.call.name, 60);
    out += text_response(name, *x.observation);
  }
  if (acts_.empty()) {
    out += no_call;
    auto used = used_;
    used.steps += idle_steps_;
    out += budget_line(board_, used, episode_.settings->tools);
  }
  return out;
}

std::string tools_mode::stop_reason_after(bool submitted) const {
  if (submitted) return "submitted";
  if (!did_anything(acts_) && empty_turns_ + 1 >= most_empty_turns) return "blocked";
  // With no step left there is one more turn, for a submission.
  bool last = used_.steps >= episode_.settings->tools.steps ||
              episode_.turn + 1 >= episode_.settings->max_turns;
  return last ? "budget_exhausted" : std::string{};
}

void tools_mode::finish_turn(std::optional<Message<wire::Verdict>> verdict) {
  ended_ = true;
  idle_steps_ = acts_.empty() ? std::min(1u, steps_left()) : 0;
  auto& current = *episode_.current;
  if (!verdict) {
    // Nothing of a measurement belongs to the turn as such: it asked for no verdict.
    current.forget_trial();
    current.parsed.ok = true;
    current.facts = turn_facts(episode_);
  }
  auto reason = lost_ ? std::string{stopped_by_infrastructure} : stop_reason_after(submitted_);
  episode_.commit_turn(with_acts(verdict), joined_observations(), reason);
}

// A cheat that was only tried leaves a trace, and calls may earn something.
Message<wire::Verdict>
tools_mode::with_acts(const std::optional<Message<wire::Verdict>>& submitted) {
  std::deque<Message<wire::Verdict>::view> open; // what the findings lie in
  calls_effect effect;
  std::vector<shaped_call> calls;
  for (const auto& x : acts_) {
    auto measured = x.measured ? tool_of(x.measure).name : std::string_view{};
    auto facts = x.facts.open();
    const auto& verdict = open.emplace_back(x.verdict);
    calls.push_back(shaped_call_of(
        {x.call.name, x.call.arguments, x.status, x.input, x.output, measured, x.steps}, *facts,
        *verdict));
    if (measured != "submit") add_critical(effect, *verdict);
  }
  shaped_ = shaping_;
  const auto& rewards = episode_.settings->rewards;
  const auto& verb = episode_.where.what->verb;
  if (!submitted) {
    effect.shaping = shaped_.take(verb, calls, nullptr);
    return open_verdict(effect, rewards);
  }
  auto& judged = open.emplace_back(*submitted);
  auto reader = *judged;
  effect.shaping = shaped_.take(verb, calls, &reader);
  return with_calls(*submitted, effect, rewards);
}

void tools_mode::add_to(wire::TurnRecord::Builder x, artifact_batch& artifacts) const {
  board_.write(x, artifacts);
  auto changes = std::find_if(acts_.rbegin(), acts_.rend(),
                              [](const act& one) { return one.transition != "inspect_only"; });
  x.setTransition(changes == acts_.rend() ? "inspect_only" : changes->transition);
  x.getCompletion().setCallsAsText(as_text_);
  x.setIdleSteps(idle_steps_);
  add_examples(x);
  auto list = x.initCalls(static_cast<unsigned>(acts_.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    const auto& from = acts_[i];
    auto to = list[i];
    to.setId(from.call.id);
    to.setTool(from.call.name);
    artifacts.put(to.initArguments(), from.call.arguments);
    artifacts.put(to.initObservation(), *from.observation);
    to.setStatus(from.status);
    to.setTransition(from.transition);
    to.setInput(from.input);
    to.setOutput(from.output);
    to.setSteps(from.steps);
    to.setGpuSeconds(from.gpu_seconds);
    to.setSeconds(from.seconds);
    to.setHidden(from.hidden);
    if (!from.measured) continue;
    to.setMeasured(std::string{tool_of(from.measure).name});
    if (!from.facts.empty()) to.setFacts(*from.facts.open());
    if (!from.verdict.empty()) to.setVerdict(*from.verdict.open());
  }
}

// To those of the first prompt.
void tools_mode::add_examples(wire::TurnRecord::Builder x) const {
  std::vector<std::string> ids;
  for (auto id : x.getExamples().asReader()) ids.emplace_back(id.cStr());
  auto before = ids.size();
  for (const auto& one : acts_)
    for (const auto& id : one.examples)
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  if (ids.size() == before) return;
  auto list = x.initExamples(static_cast<unsigned>(ids.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, ids[i]);
}

std::unique_ptr<episode_mode> make_tools_mode(episode_state& episode) {
  return std::make_unique<tools_mode>(episode);
}

} // namespace kernelmill
