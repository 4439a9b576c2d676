#include "actors/episode/tools/tool_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t max_arguments = 1 << 20; // a source of the largest size, escaped

constexpr auto text = field_type::text;
constexpr auto number = field_type::number;
constexpr auto flag = field_type::flag;

constexpr std::string_view of_which = "Id of a candidate, such as c2; left out: the active one.";
constexpr std::string_view patch_text =
    "A unified diff, or blocks of <<<<<<< SEARCH, =======, >>>>>>> REPLACE. What it says was there "
    "must be there, byte for byte, once.";

tool_field candidate_field() {
  return {"candidate", text, false, of_which, {}};
}

tool_field summary_field() {
  return {"summary", text, false, "What it changes and why, in one sentence.", {}};
}

std::vector<tool> make_tools() {
  return {
      {tool_kind::task_show,
       "task_show",
       "Shows the task again: its words, its function, its cases, what is left of the budget.",
       1,
       {}},
      {tool_kind::knowledge_query,
       "knowledge_query",
       "Finds notes and verified kernels of other tasks.",
       1,
       {{"query", text, true, "What is looked for: code, or words.", {}},
        {"count", number, false, "How many, 1 to 5; left out: 2.", {}}}},
      {tool_kind::note_strategy,
       "note_strategy",
       "Keeps a strategy and how it stands, so that later turns see what was tried.",
       1,
       {{"name", text, true, "A short name.", {}},
        {"state",
         text,
         true,
         "How it stands.",
         {"pending", "exploring", "successful", "failed", "partial", "skipped", "combined"}},
        {"note", text, false, "Why, in a sentence.", {}}}},
      {tool_kind::write_candidate,
       "write_candidate",
       "Makes a new candidate of a complete source file. It becomes the active one.",
       1,
       {{"source", text, true, "The complete source file.", {}}, summary_field()}},
      {tool_kind::patch_candidate,
       "patch_candidate",
       "Makes a new candidate by a change to another. It becomes the active one. A change that "
       "does "
       "not fit changes nothing.",
       1,
       {{"patch", text, true, patch_text, {}}, candidate_field(), summary_field()}},
      {tool_kind::test_patch,
       "test_patch",
       "patch_candidate and a measurement of the result, as one act.",
       2,
       {{"patch", text, true, patch_text, {}},
        {"measure", text, true, "Which tool measures.", {"build", "run", "eval", "bench"}},
        candidate_field(),
        summary_field()}},
      {tool_kind::branch,
       "branch",
       "Starts a line of its own from a candidate: a copy of it becomes the active one.",
       1,
       {candidate_field(), summary_field()}},
      {tool_kind::revert,
       "revert",
       "Goes back to an earlier candidate: it becomes the active one, and the one before it is "
       "marked as given up.",
       1,
       {{"candidate", text, true, "Id of the candidate to go back to.", {}}, summary_field()}},
      {tool_kind::promote,
       "promote",
       "Marks a candidate that passed `bench` as the best so far; `submit` takes it if nothing "
       "else "
       "is named.",
       1,
       {candidate_field()}},
      {tool_kind::build, "build", "Compiles a candidate.", 1, {candidate_field()}},
      {tool_kind::run,
       "run",
       "Builds a candidate and runs it on the visible cases; shows what it printed if it fails.",
       1,
       {candidate_field()}},
      {tool_kind::eval,
       "eval",
       "Builds a candidate and checks it on all cases, hidden ones too. Not timed.",
       1,
       {candidate_field()}},
      {tool_kind::bench,
       "bench",
       "As eval, and times it against the baseline, coarsely.",
       2,
       {candidate_field()}},
      {tool_kind::profile,
       "profile",
       "Says what limits a candidate that is right.",
       2,
       {candidate_field()}},
      {tool_kind::sanitize,
       "sanitize",
       "Checks the memory accesses of a candidate that is right.",
       2,
       {candidate_field()}},
      {tool_kind::inspect,
       "inspect",
       "Shows a section of what is known of a candidate, a window of lines at a time.",
       1,
       {candidate_field(),
        {"section",
         text,
         true,
         "What to show.",
         {"source", "diff", "build", "result", "profile", "sanitizer", "history"}},
        {"first_line", number, false, "From 1; left out: 1.", {}},
        {"lines", number, false, "1 to 400; left out: 100.", {}}}},
      {tool_kind::compare,
       "compare",
       "Shows two candidates beside each other: the difference of their sources and what is known "
       "of each.",
       1,
       {{"left", text, true, "Id of a candidate.", {}},
        {"right", text, false, "Id of another; left out: the active one.", {}}}},
      {tool_kind::replay,
       "replay",
       "Repeats the last measurement of a candidate and says whether it comes out the same.",
       2,
       {candidate_field()}},
      {tool_kind::submit,
       "submit",
       "Hands a candidate in: it is judged once, in full, and the episode ends. Where another "
       "candidate is better as far as is known, the difference is shown first and submit is to be "
       "called again. Costs no steps.",
       0,
       {{"candidate",
         text,
         false,
         "Id of a candidate; left out: the promoted one, else the active one.",
         {}},
        {"diagnosis", text, false, "Of a task that asks for one: the label.", {}},
        {"evidence",
         text,
         false,
         "Of a task that asks for it: how each counter changes, one a line, as in `time falls`.",
         {}},
        {"confirm", flag, false, "Hand it in whatever else is better.", {}}}},
  };
}

std::string_view name_of(field_type x) {
  switch (x) {
    case field_type::text: return "string";
    case field_type::number: return "integer";
    case field_type::flag: return "boolean";
  }
  return "string";
}

std::string make_schema(const tool& x) {
  json properties = json::object(), required = json::array();
  for (const auto& field : x.fields) {
    json entry{{"type", name_of(field.type)}, {"description", field.description}};
    if (!field.choices.empty()) entry["enum"] = field.choices;
    properties[std::string{field.name}] = std::move(entry);
    if (field.required) required.push_back(field.name);
  }
  json result{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) result["required"] = std::move(required);
  result["additionalProperties"] = false;
  return result.dump();
}

tl::unexpected<error> refused(std::string message) {
  return tl::unexpected<error>{error{fault_class::policy, "bad_arguments", std::move(message), {}}};
}

bool fits(const nlohmann::json& value, field_type type) {
  switch (type) {
    case field_type::text: return value.is_string();
    case field_type::number: return value.is_number_integer();
    case field_type::flag: return value.is_boolean();
  }
  return false;
}

// In some forms of calls all arguments are texts: a number or a flag that stands in one is meant.
nlohmann::json as_meant(const nlohmann::json& value, field_type type) {
  if (type == field_type::text || !value.is_string()) return value;
  const auto& said = value.get_ref<const std::string&>();
  if (said.size() > 20) return value;
  auto inner = nlohmann::json::parse(said, nullptr, false);
  return fits(inner, type) ? inner : value;
}

std::string names_of_fields(const tool& x) {
  std::vector<std::string_view> names;
  for (const auto& field : x.fields) names.push_back(field.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

} // namespace

std::span<const tool> all_tools() {
  static const auto tools = make_tools();
  return tools;
}

const tool* find_tool(std::string_view name) {
  auto tools = all_tools();
  auto i = std::find_if(tools.begin(), tools.end(), [&](const tool& x) { return x.name == name; });
  return i == tools.end() ? nullptr : &*i;
}

const tool& tool_of(tool_kind kind) {
  return all_tools()[static_cast<size_t>(kind)];
}

bool tells_hidden(tool_kind x) {
  return x == tool_kind::eval || x == tool_kind::bench || x == tool_kind::profile ||
         x == tool_kind::sanitize;
}

// Each request has them all.
const std::string& schema_of(const tool& x) {
  static const auto schemas = [] {
    std::vector<std::string> result;
    for (const auto& one : all_tools()) result.push_back(make_schema(one));
    return result;
  }();
  return schemas[static_cast<size_t>(x.kind)];
}

bool tool_arguments::has(std::string_view name) const {
  return texts_.contains(name) || numbers_.contains(name);
}

const std::string& tool_arguments::text(std::string_view name) const {
  static const std::string none;
  auto i = texts_.find(name);
  return i == texts_.end() ? none : i->second;
}

int64_t tool_arguments::number(std::string_view name, int64_t otherwise) const {
  auto i = numbers_.find(name);
  return i == numbers_.end() ? otherwise : i->second;
}

bool tool_arguments::flag(std::string_view name) const {
  return number(name, 0) != 0;
}

expected<tool_arguments> read_arguments(const tool& x, std::string_view bytes) {
  if (bytes.size() > max_arguments || nests_deeper(bytes))
    return refused("the arguments are too long, or nested too deeply");
  // Models leave the arguments of a tool without any out. Sorted: a model may write many keys.
  auto parsed = bytes.find_first_not_of(" \t\r\n") == std::string_view::npos
                    ? nlohmann::json::object()
                    : nlohmann::json::parse(bytes, nullptr, false);
  if (parsed.is_discarded()) return refused("the arguments are no JSON");
  if (parsed.is_null()) parsed = nlohmann::json::object();
  if (!parsed.is_object()) return refused("the arguments are no JSON object");
  tool_arguments result;
  for (const auto& [name, given] : parsed.items()) {
    auto field = std::find_if(x.fields.begin(), x.fields.end(),
                              [&](const tool_field& f) { return f.name == name; });
    if (field == x.fields.end())
      return refused(fmt::format("{} has no argument \"{}\"; its arguments: {}", x.name,
                                 name.substr(0, 60), names_of_fields(x)));
    if (given.is_null() && !field->required) continue;
    auto value = as_meant(given, field->type);
    if (!fits(value, field->type))
      return refused(fmt::format("\"{}\" is to be of type {}", field->name, name_of(field->type)));
    if (field->type == field_type::text) {
      auto said = value.get<std::string>();
      const auto& choices = field->choices;
      if (!choices.empty() && std::find(choices.begin(), choices.end(), said) == choices.end())
        return refused(
            fmt::format("\"{}\" is to be one of {}", field->name, fmt::join(choices, ", ")));
      result.texts_.emplace(name, std::move(said));
    } else {
      result.numbers_.emplace(name, value.is_boolean() ? value.get<bool>() ? 1 : 0
                                                       : value.get<int64_t>());
    }
  }
  for (const auto& field : x.fields)
    if (field.required && !result.has(field.name))
      return refused(fmt::format("{} lacks the argument \"{}\"", x.name, field.name));
  return result;
}

} // namespace kernelmill
