// task.json, key by key.

#include <algorithm>
#include <initializer_list>

#include "gpu/task/distribution.hpp"
#include "gpu/task/task_files.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/suggest.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

using nlohmann::json;

constexpr uint32_t most_inputs = 64; // of a problem in Python

tl::unexpected<error> bad(const std::string& file, const std::string& key, const std::string& cause,
                          std::string hint = {}) {
  return configuration_error("bad_task", "failed to read " + file + ": " + key + " " + cause,
                             std::move(hint));
}

// One object of the document, with its place ("cases[2]") for error texts.
class section {
public:
  section(const json& value, std::string file, std::string place)
      : value_(value), file_(std::move(file)), place_(std::move(place)) {}

  std::string key(const std::string& name) const {
    return place_.empty() ? name : place_ + "." + name;
  }
  const std::string& file() const { return file_; }
  bool has(const char* name) const { return value_.contains(name); }
  const json& at(const char* name) const { return value_.at(name); }

  expected<void> allow(const std::vector<std::string>& known) const {
    if (!value_.is_object())
      return bad(file_, place_.empty() ? "the document" : place_, "must be an object");
    for (const auto& [name, unused] : value_.items())
      if (std::find(known.begin(), known.end(), name) == known.end())
        return bad(file_, "unknown key", "\"" + key(name) + "\"", suggestion(name, known));
    return {};
  }

  expected<void> text(const char* name, std::string& into, bool needed) const {
    if (!has(name)) {
      if (needed) return bad(file_, key(name), "is missing");
      return {};
    }
    if (!at(name).is_string()) return bad(file_, key(name), "must be a string");
    into = at(name).get<std::string>();
    if (needed && into.empty()) return bad(file_, key(name), "must not be empty");
    return {};
  }

  expected<void> choice(const char* name, std::string& into, bool needed,
                        const std::vector<std::string>& known) const {
    if (auto ok = text(name, into, needed); !ok) return ok;
    if (has(name) && std::find(known.begin(), known.end(), into) == known.end())
      return bad(file_, key(name), "is \"" + into + "\", which does not exist",
                 suggestion(into, known));
    return {};
  }

  expected<void> texts(const char* name, std::vector<std::string>& into) const {
    if (!has(name)) return {};
    if (!at(name).is_array()) return bad(file_, key(name), "must be a list of strings");
    into.clear();
    for (const auto& item : at(name)) {
      if (!item.is_string()) return bad(file_, key(name), "must be a list of strings");
      into.push_back(item.get<std::string>());
    }
    return {};
  }

  expected<expression> formula(const json& value, const std::string& name) const {
    if (value.is_number_integer()) return expression::parse(std::to_string(value.get<int64_t>()));
    if (!value.is_string()) return bad(file_, key(name), "must be an expression in a string");
    auto parsed = expression::parse(value.get<std::string>());
    if (!parsed)
      return bad(file_, key(name), "is wrong: " + parsed.error().message, parsed.error().hint);
    return parsed;
  }

  expected<void> formulas(const char* name, std::vector<expression>& into) const {
    if (!has(name)) return {};
    if (!at(name).is_array()) return bad(file_, key(name), "must be a list of expressions");
    for (const auto& item : at(name)) {
      auto parsed = formula(item, name);
      KM_TRY(parsed);
      into.push_back(std::move(*parsed));
    }
    return {};
  }

private:
  const json& value_;
  std::string file_;
  std::string place_;
};

// Runs checks in order and stops at the first that fails.
expected<void> all(std::initializer_list<expected<void>> results) {
  for (const auto& result : results)
    if (!result) return result;
  return {};
}

argument_role role_of(const std::string& name) {
  if (name == "output") return argument_role::output;
  if (name == "inout") return argument_role::inout;
  return name == "scalar" ? argument_role::scalar : argument_role::input;
}

expected<void> read_fill(const section& from, argument& x) {
  bool filled = x.role == argument_role::input || x.role == argument_role::inout;
  if (!filled) {
    if (from.has("fill") || from.has("fill_range"))
      return bad(from.file(), from.key("fill"), "belongs to inputs only");
    return {};
  }
  x.fill = x.type == dtype::f32 ? "normal" : "index";
  if (auto ok = from.choice("fill", x.fill, false, distributions(x.type)); !ok) return ok;
  if (auto ok = from.formulas("fill_range", x.fill_range); !ok) return ok;
  if (x.type == dtype::i32 && x.fill_range.size() != 2)
    return bad(from.file(), from.key("fill_range"), "must be [\"low\", \"high\"] for an i32 input");
  if (x.type == dtype::f32 && !x.fill_range.empty())
    return bad(from.file(), from.key("fill_range"), "belongs to i32 inputs only");
  return {};
}

expected<argument> read_argument(const json& value, const std::string& file, size_t index) {
  section from{value, file, "arguments[" + std::to_string(index) + "]"};
  argument x;
  KM_TRY(from.allow({"name", "role", "type", "shape", "fill", "fill_range"}));
  std::string role;
  std::string type;
  auto ok = all({from.text("name", x.name, true),
                 from.choice("role", role, true, {"input", "output", "inout", "scalar"}),
                 from.choice("type", type, true, {"f32", "i32"}), from.formulas("shape", x.shape)});
  KM_TRY(ok);
  x.role = role_of(role);
  x.type = type == "f32" ? dtype::f32 : dtype::i32;
  if (x.role == argument_role::scalar && x.type == dtype::f32)
    return bad(file, from.key("type"), "must be \"i32\" for a scalar",
               "write a float constant into the prompt");
  if (x.role == argument_role::scalar ? !x.shape.empty() : x.shape.empty() || x.shape.size() > 8)
    return bad(file, from.key("shape"),
               "must have 1 to 8 expressions for a tensor and none for a scalar");
  KM_TRY(read_fill(from, x));
  return x;
}

expected<void> read_scalars(const section& from, const task& owner, task_case& x) {
  if (!from.has("scalars") || !from.at("scalars").is_object())
    return bad(from.file(), from.key("scalars"), "must be an object");
  std::vector<std::string> names;
  for (const auto& arg : owner.arguments)
    if (arg.role == argument_role::scalar) names.push_back(arg.name);
  for (const auto& [name, value] : from.at("scalars").items()) {
    auto key = from.key("scalars." + name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      return bad(from.file(), key, "names no scalar argument", suggestion(name, names));
    if (!value.is_number_integer() || value < INT32_MIN || value > INT32_MAX)
      return bad(from.file(), key, "must be an integer of 32 bits");
    x.scalars[name] = value.get<int64_t>();
  }
  for (const auto& name : names)
    if (x.scalars.count(name) == 0)
      return bad(from.file(), from.key("scalars." + name), "is missing");
  return {};
}

expected<void> read_fills(const section& from, const task& owner, task_case& x) {
  if (!from.has("fills")) return {};
  if (!from.at("fills").is_object())
    return bad(from.file(), from.key("fills"), "must be an object");
  std::vector<std::string> names;
  for (const auto& arg : owner.arguments)
    if (!arg.fill.empty()) names.push_back(arg.name);
  for (const auto& [name, value] : from.at("fills").items()) {
    auto key = from.key("fills." + name);
    auto found = std::find_if(owner.arguments.begin(), owner.arguments.end(),
                              [&, &wanted = name](const argument& a) { return a.name == wanted; });
    if (found == owner.arguments.end() || found->fill.empty())
      return bad(from.file(), key, "names no input", suggestion(name, names));
    if (!value.is_string() || !is_distribution(value.get<std::string>(), found->type))
      return bad(from.file(), key, "is not a distribution of this type",
                 suggestion(value.is_string() ? value.get<std::string>() : "",
                            distributions(found->type)));
    x.fills[name] = value.get<std::string>();
  }
  return {};
}

expected<task_case> read_case(const json& value, const std::string& file, const std::string& place,
                              const task& owner) {
  section from{value, file, place};
  task_case x;
  bool timed = place == "timed" || place == "timed_gpu";
  auto ok = from.allow(timed ? std::vector<std::string>{"scalars", "fills"}
                             : std::vector<std::string>{"name", "hidden", "scalars", "fills"});
  KM_TRY(ok);
  x.name = "timed";
  if (ok = from.text("name", x.name, !timed); !ok) return tl::unexpected<error>{ok.error()};
  if (from.has("hidden")) {
    if (!from.at("hidden").is_boolean())
      return bad(file, from.key("hidden"), "must be true or false");
    x.hidden = from.at("hidden").get<bool>();
  }
  if (ok = read_scalars(from, owner, x); !ok) return tl::unexpected<error>{ok.error()};
  if (ok = read_fills(from, owner, x); !ok) return tl::unexpected<error>{ok.error()};
  return x;
}

const json& list_at(const json& document, const char* name) {
  static const json none = json::array();
  return document.contains(name) && document.at(name).is_array() ? document.at(name) : none;
}

expected<void> read_arguments(const json& document, const std::string& file, task& x) {
  const auto& list = list_at(document, "arguments");
  if (list.empty() || list.size() > 16)
    return bad(file, "arguments", "must be a list of 1 to 16 arguments");
  for (size_t i = 0; i < list.size(); ++i) {
    auto arg = read_argument(list[i], file, i);
    KM_TRY(arg);
    x.arguments.push_back(std::move(*arg));
  }
  return {};
}

expected<void> read_cases(const json& document, const std::string& file, task& x) {
  const auto& list = list_at(document, "cases");
  if (list.empty() || list.size() > 32)
    return bad(file, "cases", "must be a list of 1 to 32 cases");
  for (size_t i = 0; i < list.size(); ++i) {
    auto one = read_case(list[i], file, "cases[" + std::to_string(i) + "]", x);
    KM_TRY(one);
    for (const auto& other : x.cases)
      if (other.name == one->name)
        return bad(file, "cases[" + std::to_string(i) + "].name", "is used twice: " + other.name);
    x.cases.push_back(std::move(*one));
  }
  if (std::all_of(x.cases.begin(), x.cases.end(), [](const task_case& c) { return c.hidden; }))
    return bad(file, "cases", "must hold at least one visible case");
  if (!document.contains("timed")) return bad(file, "timed", "is missing");
  auto timed = read_case(document.at("timed"), file, "timed", x);
  KM_TRY(timed);
  x.timed_cpu = std::move(*timed);
  if (!document.contains("timed_gpu")) return {};
  timed = read_case(document.at("timed_gpu"), file, "timed_gpu", x);
  KM_TRY(timed);
  x.timed_gpu = std::move(*timed);
  return {};
}

expected<void> read_numbers(const section& from, task& x) {
  for (auto [name, into] : {std::pair{"bytes", &x.bytes}, std::pair{"flops", &x.flops}}) {
    if (!from.has(name)) return bad(from.file(), name, "is missing");
    auto parsed = from.formula(from.at(name), name);
    KM_TRY(parsed);
    *into = std::move(*parsed);
  }
  if (!from.has("tolerance")) return {};
  if (!from.at("tolerance").is_number() || from.at("tolerance").get<double>() <= 0)
    return bad(from.file(), "tolerance", "must be a number above 0");
  x.tolerance = from.at("tolerance").get<double>();
  return {};
}

} // namespace

std::string suggestion(const std::string& wrong, const std::vector<std::string>& known) {
  if (auto meant = closest(wrong, known); !meant.empty()) return "did you mean \"" + meant + "\"?";
  return known.empty() ? "there is none" : "there are: " + joined(known);
}

namespace {

// What tasks of every contract have.
expected<void> read_head(const section& from, task& x) {
  std::string id;
  std::string contract = to_string(x.contract);
  auto ok = all({from.text("id", id, true), from.text("title", x.title, true),
                 from.choice("verb", x.verb, true, task_verbs()),
                 from.text("operator_family", x.operator_family, true),
                 from.choice("contract", contract, false, {"native", "torch", "program"}),
                 from.choice("difficulty", x.difficulty, false, {"easy", "medium", "hard"}),
                 from.choice("split", x.split, false, {"train", "dev"}),
                 from.text("source", x.source, false), from.texts("backends", x.backends)});
  if (!ok) return ok;
  x.contract = *contract_of(contract); // one of the choices
  if (x.id.empty()) x.id = id;         // loaded by its folder; the loader compares the two
  if (id != x.id)
    return bad(from.file(), "id", "is \"" + id + "\" but the folder says \"" + x.id + "\"");
  for (const auto& backend : x.backends)
    if (backend != "cpu" && backend != "cuda" && backend != "hip")
      return bad(from.file(), "backends", "names \"" + backend + "\", which does not exist",
                 "there are: cpu, cuda, hip");
  if (x.backends.empty())
    return bad(from.file(), "backends", "must name one", "there are: cpu, cuda, hip");
  return {};
}

expected<void> read_count(const section& from, const char* name, uint32_t& into) {
  if (!from.has(name)) return {};
  const auto& value = from.at(name);
  if (!value.is_number_integer() || value < 0 || value > 1'000'000)
    return bad(from.file(), name, "must be an integer from 0 to 1000000");
  into = value.get<uint32_t>();
  return {};
}

// Positions of inputs, each once.
expected<void> read_positions(const section& from, const char* name, std::vector<uint32_t>& into) {
  if (!from.has(name)) return {};
  const auto& list = from.at(name);
  auto wrong = bad(from.file(), name, "must be a list of different positions of inputs, from 0",
                   "[1] names the second that get_inputs() returns");
  if (!list.is_array() || list.size() > most_inputs) return wrong;
  for (const auto& item : list) {
    if (!item.is_number_integer() || item < 0 || item >= most_inputs) return wrong;
    auto at = item.get<uint32_t>();
    if (std::find(into.begin(), into.end(), at) != into.end()) return wrong;
    into.push_back(at);
  }
  return {};
}

// A problem in Python: no signature, no cases; what its inputs are its own code says.
expected<void> read_torch_document(const json& document, const std::string& file, task& x) {
  section from{document, file, ""};
  if (auto ok = from.allow(
          {"schema_version", "id",        "title",    "verb",     "operator_family", "contract",
           "difficulty",     "split",     "source",   "backends", "suite",           "level",
           "problem_id",     "precision", "mutates",  "variants", "language",        "diagnoses",
           "diagnosis",      "evidence",  "strategy", "port",     "entry",           "tolerance"});
      !ok)
    return ok;
  if (from.has("schema_version") && from.at("schema_version") != 1)
    return bad(file, "schema_version", "must be 1", "this Kernelmill reads version 1 of task.json");
  x.difficulty = "medium";
  x.backends = {"cpu", "cuda"};
  if (auto ok = read_head(from, x); !ok) return ok;
  auto& problem = x.torch;
  if (from.has("variants"))
    if (auto ok = read_variants(from.at("variants"), file, problem.variants); !ok) return ok;
  if (from.has("entry")) {
    auto entry = read_entry(from.at("entry"), file);
    KM_TRY(entry);
    problem.entry = std::move(*entry);
  }
  if (from.has("tolerance")) {
    auto tolerance = read_tolerance(from.at("tolerance"), file, "tolerance");
    KM_TRY(tolerance);
    problem.tolerance = *tolerance;
  }
  return all({from.text("suite", problem.suite, false), read_count(from, "level", problem.level),
              read_count(from, "problem_id", problem.problem_id),
              from.choice("precision", problem.precision, false, torch_precisions()),
              read_positions(from, "mutates", problem.mutates), read_verb(document, file, x)});
}

// Files and commands: no signature, no cases; what is right the tests say.
expected<void> read_program_document(const json& document, const std::string& file, task& x) {
  section from{document, file, ""};
  KM_TRY(from.allow({"schema_version", "id", "title", "verb", "operator_family", "contract",
                     "difficulty", "split", "source", "backends", "suite", "program"}));
  if (!from.has("schema_version") || from.at("schema_version") != 1)
    return bad(file, "schema_version", "must be 1", "this Kernelmill reads version 1 of task.json");
  x.difficulty = "medium";
  x.backends = {"cuda"};
  KM_TRY(read_head(from, x));
  if (x.verb != "optimize" && x.verb != "synthesize")
    return bad(file, "verb", "is \"" + x.verb + "\", which the contract program does not have",
               "there are: optimize, synthesize");
  KM_TRY(from.text("suite", x.program.suite, false));
  return read_program(document, file, x);
}

} // namespace

expected<void> read_document(const json& document, const std::string& file, task& x) {
  auto contract = document.is_object() ? document.value("contract", json{}) : json{};
  if (contract == "torch") return read_torch_document(document, file, x);
  if (contract == "program") return read_program_document(document, file, x);
  section from{document, file, ""};
  if (auto ok = from.allow({"schema_version", "id",         "title", "verb",      "operator_family",
                            "contract",       "difficulty", "split", "source",    "backends",
                            "function",       "arguments",  "cases", "timed",     "timed_gpu",
                            "tolerance",      "bytes",      "flops", "diagnoses", "diagnosis",
                            "evidence",       "strategy",   "port"});
      !ok)
    return ok;
  if (!from.has("schema_version") || from.at("schema_version") != 1)
    return bad(file, "schema_version", "must be 1", "this Kernelmill reads version 1 of task.json");
  x.difficulty = "medium";
  x.backends = {"cpu"};
  if (auto ok = read_head(from, x); !ok) return ok;
  if (auto ok = from.text("function", x.function, false); !ok) return ok;
  if (auto read = read_arguments(document, file, x); !read) return read;
  if (auto read = read_cases(document, file, x); !read) return read;
  for (const char* backend : {"cuda", "hip"})
    if (x.names(backend) && !document.contains("timed_gpu"))
      return bad(file, "timed_gpu", std::string{"is missing, and backends names "} + backend);
  if (auto read = read_numbers(from, x); !read) return read;
  if (auto read = read_verb(document, file, x); !read) return read;
  return check_signature(x, file);
}

} // namespace kernelmill
