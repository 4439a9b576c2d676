// The keys of task.json that belong to single verbs.

#include <algorithm>

#include "gpu/task/task_files.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "messages/torch_words.hpp"

namespace kernelmill {

namespace {

using nlohmann::json;

constexpr size_t most_changes = 8;
constexpr double largest_factor = 1000;

tl::unexpected<error> bad_key(const std::string& file, const std::string& key,
                              const std::string& cause, std::string hint = {}) {
  return configuration_error("bad_task", "failed to read " + file + ": " + key + " " + cause,
                             std::move(hint));
}

bool is_one_of(const std::string& x, const std::vector<std::string>& known) {
  return std::find(known.begin(), known.end(), x) != known.end();
}

expected<std::string> text_in(const json& document, const char* name, const std::string& file,
                              const std::string& place) {
  auto found = document.find(name);
  if (found == document.end()) return std::string{};
  if (!found->is_string()) return bad_key(file, place + name, "must be a string");
  return found->get<std::string>();
}

expected<void> only(const json& value, const std::vector<std::string>& known,
                    const std::string& file, const std::string& place) {
  for (const auto& [name, unused] : value.items())
    if (!is_one_of(name, known))
      return bad_key(file, "unknown key", "\"" + place + name + "\"", suggestion(name, known));
  return {};
}

// -- what must change -----------------------------------------------------------------------------

expected<counter_change> read_change(const json& value, const std::string& file,
                                     const std::string& place, bool may_hide) {
  if (!value.is_object()) return bad_key(file, place, "must be an object");
  std::vector<std::string> known{"counter", "change", "by"};
  if (may_hide) known.emplace_back("hidden");
  KM_TRY(only(value, known, file, place + "."));
  counter_change x;
  auto counter = text_in(value, "counter", file, place + ".");
  KM_TRY(counter);
  x.counter = std::move(*counter);
  if (!is_one_of(x.counter, task_counters()))
    return bad_key(file, place + ".counter", "is \"" + x.counter + "\", which does not exist",
                   suggestion(x.counter, task_counters()));
  auto change = text_in(value, "change", file, place + ".");
  KM_TRY(change);
  if (*change != "falls" && *change != "rises")
    return bad_key(file, place + ".change", "must be \"falls\" or \"rises\"");
  x.rises = *change == "rises";
  if (auto by = value.find("by"); by != value.end()) {
    if (!by->is_number() || by->get<double>() < 1 || by->get<double>() > largest_factor)
      return bad_key(file, place + ".by", "must be a factor from 1 to 1000");
    x.by = by->get<double>();
  }
  if (auto hidden = value.find("hidden"); hidden != value.end()) {
    if (!hidden->is_boolean()) return bad_key(file, place + ".hidden", "must be true or false");
    x.hidden = hidden->get<bool>();
  }
  return x;
}

expected<void> read_changes(const json& document, const char* name, const std::string& file,
                            bool may_hide, std::vector<counter_change>& into) {
  auto found = document.find(name);
  if (found == document.end()) return {};
  if (!found->is_array() || found->empty() || found->size() > most_changes)
    return bad_key(file, name, "must be a list of 1 to 8 changes of counters",
                   R"([{"counter": "time", "change": "falls", "by": 2}])");
  for (size_t i = 0; i < found->size(); ++i) {
    auto place = std::string{name} + "[" + std::to_string(i) + "]";
    auto one = read_change((*found)[i], file, place, may_hide);
    KM_TRY(one);
    for (const auto& other : into)
      if (other.counter == one->counter)
        return bad_key(file, place + ".counter", "is used twice: " + one->counter);
    into.push_back(std::move(*one));
  }
  return {};
}

// -- diagnose, reformulate ------------------------------------------------------------------------

expected<void> read_labels(const json& document, const std::string& file, task& x) {
  auto right = text_in(document, "diagnosis", file, "");
  KM_TRY(right);
  x.diagnosis = std::move(*right);
  auto labels = document.find("diagnoses");
  if (labels == document.end()) return {};
  if (!labels->is_array()) return bad_key(file, "diagnoses", "must be a list of strings");
  for (const auto& label : *labels) {
    if (!label.is_string()) return bad_key(file, "diagnoses", "must be a list of strings");
    x.diagnoses.push_back(label.get<std::string>());
  }
  return {};
}

expected<void> check_labels(const std::string& file, const task& x) {
  if (x.verb != "diagnose") {
    if (!x.diagnoses.empty() || !x.diagnosis.empty() || !x.evidence.empty())
      return bad_key(file, x.evidence.empty() ? "diagnosis" : "evidence",
                     "belongs to the verb \"diagnose\" only");
    return {};
  }
  if (x.diagnoses.size() < 2) return bad_key(file, "diagnoses", "must list at least two labels");
  if (!is_one_of(x.diagnosis, x.diagnoses))
    return bad_key(file, "diagnosis", "is not one of diagnoses",
                   suggestion(x.diagnosis, x.diagnoses));
  return {};
}

// -- port, language -------------------------------------------------------------------------------

const std::vector<std::string>& languages_of(const task& x) {
  static const std::vector<std::string> native{"cpp", "cuda", "hip"};
  static const std::vector<std::string> torch{"torch", "cuda", "triton"};
  return x.contract == contract_kind::torch ? torch : native;
}

expected<void> read_port(const json& document, const std::string& file, task& x) {
  auto found = document.find("port");
  if (found == document.end()) {
    if (x.verb != "port") return {};
    return bad_key(file, "port", "is missing, and the verb is \"port\"",
                   R"("port": {"from": "cuda", "to": "triton"})");
  }
  if (x.verb != "port") return bad_key(file, "port", "belongs to the verb \"port\" only");
  if (!found->is_object()) return bad_key(file, "port", "must be an object");
  KM_TRY(only(*found, {"from", "to"}, file, "port."));
  for (auto [name, into] : {std::pair{"from", &x.port.from}, std::pair{"to", &x.port.to}}) {
    auto language = text_in(*found, name, file, "port.");
    KM_TRY(language);
    *into = std::move(*language);
    if (!is_one_of(*into, languages_of(x)))
      return bad_key(file, std::string{"port."} + name,
                     "is \"" + *into + "\", which does not exist",
                     suggestion(*into, languages_of(x)));
  }
  if (x.port.from == x.port.to) return bad_key(file, "port.to", "is the language of port.from");
  return {};
}

// A native answer's language is that of its backend.
expected<void> check_port_backend(const std::string& file, const task& x) {
  std::string wanted = x.port.to == "cpp" ? "cpu" : x.port.to;
  if (x.backends == std::vector{wanted}) return {};
  return bad_key(file, "backends",
                 "must be [\"" + wanted + "\"], because answers are in " + x.port.to);
}

expected<void> read_language(const json& document, const std::string& file, task& x) {
  const auto& known = answer_languages();
  auto language = text_in(document, "language", file, "");
  KM_TRY(language);
  auto& wanted = x.torch.language;
  if (!language->empty()) {
    if (!is_one_of(*language, known))
      return bad_key(file, "language", "is \"" + *language + "\", which does not exist",
                     suggestion(*language, known));
    wanted = std::move(*language);
  }
  if (x.verb == "port") {
    if (document.contains("language") && wanted != x.port.to)
      return bad_key(file, "language", "is not port.to, " + x.port.to,
                     "leave it out: the verb port asks for port.to");
    wanted = x.port.to;
  }
  if (wanted != "any" && wanted != "torch" && x.names("cpu"))
    return bad_key(file, "backends", "names cpu, and answers are in " + wanted,
                   "\"backends\": [\"cuda\"]");
  return {};
}

} // namespace

const std::vector<std::string>& task_verbs() {
  static const std::vector<std::string> verbs{"optimize",    "debug",      "diagnose",
                                              "reformulate", "synthesize", "port"};
  return verbs;
}

bool has_starter(const std::string& verb) {
  return verb == "debug" || verb == "diagnose" || verb == "reformulate" || verb == "port";
}

const std::vector<std::string>& task_counters() {
  // `time` is that of each evaluation; those of code are counted in what the CPU's compiler made;
  // the rest is what profilers tell.
  static const std::vector<std::string> counters{"time",
                                                 "code_instructions",
                                                 "code_vector_instructions",
                                                 "code_divisions",
                                                 "code_calls",
                                                 "code_branches",
                                                 "instructions",
                                                 "cycles",
                                                 "cache_misses",
                                                 "branch_misses",
                                                 "launches",
                                                 "registers",
                                                 "spill_bytes",
                                                 "static_shared",
                                                 "achieved_occupancy",
                                                 "dram_bytes",
                                                 "dram_throughput",
                                                 "compute_throughput",
                                                 "load_bytes_per_sector",
                                                 "store_bytes_per_sector",
                                                 "load_sectors",
                                                 "load_requests",
                                                 "bank_conflicts",
                                                 "local_loads",
                                                 "local_stores",
                                                 "global_atomics",
                                                 "shared_atomics",
                                                 "fp64_pipe",
                                                 "tensor_pipe",
                                                 "active_threads",
                                                 "stall_barrier",
                                                 "stall_long_scoreboard"};
  return counters;
}

std::vector<std::string> code_counters_of(const task& x) {
  std::vector<std::string> result;
  for (const auto* list : {&x.evidence, &x.strategy})
    for (const auto& change : *list)
      if (change.counter.starts_with("code_") && !is_one_of(change.counter, result))
        result.push_back(change.counter);
  return result;
}

bool compares_code(const task& x) {
  if (x.contract == contract_kind::torch || x.starter.empty()) return false;
  return x.verb == "reformulate" || !code_counters_of(x).empty();
}

const std::string& starter_to_port(const task& x) {
  if (x.port.from == "cpp") return x.starter_cpu;
  return x.port.from == "hip" ? x.starter_hip : x.starter_gpu;
}

std::string counter_change::text() const {
  return counter + (rises ? " rises" : " falls");
}

/// What is graded by measuring, and not by what an answer says, must be what evaluations measure of
/// candidate and starter: else a task would ask for what is never looked at.
expected<void> check_measured(const std::string& file, const task& x) {
  auto check = [&](const char* list, const counter_change& change) -> expected<void> {
    bool of_code = change.counter.starts_with("code_") && x.contract != contract_kind::torch;
    if (change.counter == "time" || of_code) return {};
    return bad_key(file, list, "has \"" + change.counter + "\", which no evaluation measures",
                   x.contract == contract_kind::torch ? "use \"time\""
                                                      : "use \"time\" or one of \"code_...\"");
  };
  for (const auto& change : x.evidence)
    if (change.hidden) KM_TRY(check("evidence", change));
  for (const auto& change : x.strategy) KM_TRY(check("strategy", change));
  return {};
}

expected<void> read_verb(const json& document, const std::string& file, task& x) {
  KM_TRY(read_labels(document, file, x));
  KM_TRY(read_changes(document, "evidence", file, true, x.evidence));
  KM_TRY(read_changes(document, "strategy", file, false, x.strategy));
  KM_TRY(check_measured(file, x));
  KM_TRY(check_labels(file, x));
  if (x.verb != "reformulate" && !x.strategy.empty())
    return bad_key(file, "strategy", "belongs to the verb \"reformulate\" only");
  KM_TRY(read_port(document, file, x));
  if (x.contract == contract_kind::torch) return read_language(document, file, x);
  return x.verb == "port" ? check_port_backend(file, x) : expected<void>{};
}

} // namespace kernelmill
