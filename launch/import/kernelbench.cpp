#include "launch/import/kernelbench.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "gpu/task/task.hpp"
#include "launch/import/import_words.hpp"
#include "launch/import/shapes.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

constexpr uint32_t max_level = 99;
constexpr size_t max_code = 512 << 10;

constexpr const char* what_is_read =
    "give a problems.jsonl, or a checkout that has KernelBench/level1/*.py";

tl::unexpected<error> bad(const std::string& place, const std::string& cause) {
  return configuration_error("bad_problem", "failed to read " + place + ": " + cause,
                             "each line of a problems.jsonl is {\"level\": 1, \"problem_id\": 19, "
                             "\"name\": \"19_ReLU\", \"code\": \"...\"}");
}

// "19" of "19_ReLU"; 0 when there is none.
uint32_t leading_number(const std::string& name) {
  uint32_t result = 0;
  for (size_t i = 0; i < name.size() && i < 7 && name[i] >= '0' && name[i] <= '9'; ++i)
    result = 10 * result + static_cast<uint32_t>(name[i] - '0');
  return result;
}

expected<void> check(const kernelbench_problem& x) {
  if (x.level < 1 || x.level > max_level)
    return bad(x.place, "level is " + std::to_string(x.level) + ", not a number from 1 to 99");
  if (!is_folder_name(x.name))
    return bad(x.place, "name is \"" + x.name + "\", which no folder may have");
  if (x.code.size() > max_code) return bad(x.place, "code is longer than 512 KiB");
  if (auto missing = missing_of_problem(x.code); !missing.empty()) return bad(x.place, missing);
  return {};
}

expected<std::string> text_of(const fs::path& path) {
  auto text = read_whole(path.string());
  if (!text)
    return configuration_error("missing_file", "failed to read " + path.string(), what_is_read);
  return std::move(*text);
}

expected<uint32_t> number_at(const nlohmann::json& line, const char* key,
                             const std::string& place) {
  if (!line.contains(key)) return bad(place, std::string{key} + " is missing");
  const auto& value = line.at(key);
  if (!value.is_number_integer() || value < 0 || value > 1'000'000)
    return bad(place, std::string{key} + " is no number");
  return value.get<uint32_t>();
}

expected<kernelbench_problem> problem_of(const nlohmann::json& line, const std::string& place) {
  if (line.is_discarded()) return bad(place, "it is no JSON");
  if (!line.is_object()) return bad(place, "it is no object");
  kernelbench_problem x;
  x.place = place;
  for (auto [key, into] : {std::pair{"level", &x.level}, std::pair{"problem_id", &x.problem_id}}) {
    auto value = number_at(line, key, place);
    KM_TRY(value);
    *into = *value;
  }
  for (auto [key, into] : {std::pair{"name", &x.name}, std::pair{"code", &x.code}}) {
    if (!line.contains(key)) return bad(place, std::string{key} + " is missing");
    if (!line.at(key).is_string()) return bad(place, std::string{key} + " is no text");
    *into = line.at(key).get<std::string>();
  }
  if (x.name.ends_with(".py")) x.name.resize(x.name.size() - 3);
  // Names of the benchmark's files begin with the number; so do those of our folders.
  if (leading_number(x.name) != x.problem_id) x.name = std::to_string(x.problem_id) + "_" + x.name;
  KM_TRY(check(x));
  return x;
}

using problems = std::vector<kernelbench_problem>;

expected<problems> read_lines(const fs::path& path) {
  auto text = text_of(path);
  KM_TRY(text);
  problems result;
  std::istringstream lines{*text};
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto place = path.string() + ", line " + std::to_string(number);
    if (nests_deeper(line)) return bad(place, "it nests too deep");
    auto x = problem_of(nlohmann::json::parse(line, nullptr, false), place);
    KM_TRY(x);
    result.push_back(std::move(*x));
  }
  if (result.empty())
    return configuration_error(
        "bad_problem", "failed to read " + path.string() + ": it holds no problem", what_is_read);
  return result;
}

// "level1" is 1; 0: the folder is none of a level.
uint32_t level_of(const fs::path& folder) {
  auto name = folder.filename().string();
  if (!name.starts_with("level")) return 0;
  auto digits = name.substr(5);
  auto level = leading_number(digits);
  return std::to_string(level) == digits ? level : 0;
}

expected<void> read_level(const fs::path& folder, uint32_t level, problems& into) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator{folder, code}) {
    auto name = entry.path().stem().string();
    // __init__.py and the like are no problems.
    if (entry.path().extension() != ".py" || leading_number(name) == 0) continue;
    auto text = text_of(entry.path());
    KM_TRY(text);
    into.push_back({level, leading_number(name), name, std::move(*text), entry.path().string()});
    if (auto ok = check(into.back()); !ok) return ok;
  }
  if (code)
    return configuration_error(
        "missing_file", "failed to read " + folder.string() + ": " + code.message(), what_is_read);
  return {};
}

expected<problems> read_folder(fs::path folder) {
  std::error_code code;
  if (fs::is_directory(folder / "KernelBench", code)) folder /= "KernelBench";
  problems result;
  for (const auto& entry : fs::directory_iterator{folder, code}) {
    auto level = level_of(entry.path());
    if (level == 0 || !entry.is_directory(code)) continue;
    KM_TRY(read_level(entry.path(), level, result));
  }
  if (result.empty() && fs::exists(folder / "problems.jsonl", code))
    return read_lines(folder / "problems.jsonl");
  if (result.empty())
    return configuration_error("missing_file",
                               "failed to find problems in " + folder.string() +
                                   ": there is no level1/*.py and no problems.jsonl",
                               what_is_read);
  return result;
}

expected<void> check_unique(const problems& all) {
  std::set<std::string> seen;
  for (const auto& x : all)
    if (!seen.insert(x.id()).second)
      return bad(x.place,
                 "it is the second problem " + x.name + " of level " + std::to_string(x.level));
  return {};
}

// -- what a problem is about ----------------------------------------------------------------------

struct family_rule {
  const char* word;
  const char* family;
};

// The first that the lower-case name contains decides: "Max_Pooling" is no reduction, and "RMSNorm"
// no sum.
constexpr family_rule families_of_level_1[] = {
    {"attention", "attention"}, {"loss", "loss"},
    {"conv", "convolution"},    {"scalar_multiplication", "elementwise"},
    {"matmul", "matmul"},       {"matrix", "matmul"},
    {"gemm", "matmul"},         {"bmm", "matmul"},
    {"pool", "pooling"},        {"norm", "normalization"},
    {"cumsum", "scan"},         {"cumprod", "scan"},
    {"scan", "scan"},           {"reduction", "reduction"},
    {"argmax", "reduction"},    {"argmin", "reduction"},
    {"softmax", "activation"},  {"elu", "activation"},
    {"sigmoid", "activation"},  {"tanh", "activation"},
    {"swish", "activation"},    {"softplus", "activation"},
    {"softsign", "activation"}, {"mish", "activation"},
};

// "Square matrix multiplication" of "1_Square_matrix_multiplication_".
std::string title_of(const kernelbench_problem& x) {
  std::string result;
  for (char c : x.name.substr(std::to_string(leading_number(x.name)).size())) {
    char shown = c == '_' ? ' ' : c;
    if (shown == ' ' && (result.empty() || result.back() == ' ')) continue;
    result += shown;
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result.empty() ? x.name : result;
}

std::string prompt_of(const kernelbench_problem& x) {
  return "Problem " + std::to_string(x.problem_id) + " of KernelBench, level " +
         std::to_string(x.level) + ": " + title_of(x) +
         ".\n\nBelow stands a PyTorch module, `Model`, with the functions that make its inputs. "
         "Write a module\n`ModelNew` that computes the same from the same inputs in less time. "
         "Which operators you replace by\nkernels of your own, what you fuse and what you leave "
         "to the framework is yours to choose.\n";
}

} // namespace

expected<std::vector<kernelbench_problem>> read_kernelbench(const std::string& path) {
  std::error_code code;
  if (!fs::exists(path, code))
    return configuration_error("missing_file", "failed to read " + path + ": there is no such file",
                               what_is_read);
  auto result = fs::is_directory(path, code) ? read_folder(path) : read_lines(path);
  if (!result) return result;
  KM_TRY(check_unique(*result));
  std::sort(result->begin(), result->end(), [](const auto& a, const auto& b) {
    return std::tie(a.level, a.problem_id, a.name) < std::tie(b.level, b.problem_id, b.name);
  });
  return result;
}

std::string operator_family_of(const kernelbench_problem& x) {
  auto name = lowered(x.name);
  if (name.find("attention") != name.npos) return "attention";
  if (x.level == 2) return "fusion";
  if (x.level > 2) return "network";
  for (const auto& rule : families_of_level_1)
    if (name.find(rule.word) != name.npos) return rule.family;
  return "elementwise";
}

std::vector<task_file> task_files_of(const kernelbench_problem& x, const std::string& precision) {
  nlohmann::ordered_json document = {
      {"schema_version", 1},
      {"id", x.id()},
      {"title", title_of(x)},
      {"verb", "optimize"},
      {"operator_family", operator_family_of(x)},
      {"contract", "torch"},
      {"difficulty", x.level == 1   ? "easy"
                     : x.level == 2 ? "medium"
                                    : "hard"},
      {"backends", {"cpu", "cuda"}},
      {"source", "kernelbench"},
      {"suite", "kernelbench"},
      {"level", x.level},
      {"problem_id", x.problem_id},
      {"precision", precision.empty() ? precision_of_problem(x.code) : precision},
  };
  using nlohmann::json;
  auto text = document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  return {{"task.json", text}, {"problem.py", x.code}, {"prompt.md", prompt_of(x)}};
}

namespace {

// -- problems that load a model -------------------------------------------------------------------

constexpr const char* from_network =
    "it loads a model from the network; --models DIR names a folder "
    "with MODEL/config.json";

// The model's configuration, as its owner has it in a folder.
expected<nlohmann::ordered_json> configuration_of(const std::string& models,
                                                  const std::string& name) {
  auto folder = fs::path{models} / name;
  for (const auto& part : fs::path{name})
    if (!is_folder_name(part.string())) return bad(name, "its name is none for a folder");
  auto text = read_in_folder(folder.string(), "config.json", max_code);
  KM_TRY(text);
  if (nests_deeper(*text)) return bad(folder.string() + "/config.json", "it nests too deep");
  auto result = nlohmann::ordered_json::parse(*text, nullptr, false);
  if (!result.is_object() || !result.contains("model_type") || !result["model_type"].is_string())
    return bad(folder.string() + "/config.json", "it is no configuration with a model_type");
  return result;
}

// The problem with the configuration in its text, and parameters drawn by the seed, as those of all
// problems are: nothing is read from a disk or the network, in no process. Returns the reason why
// that cannot be.
std::string make_local(std::string& code, const std::string& models, std::string& cause) {
  if (models.empty()) return from_network;
  static const std::regex named{R"re(\nmodel_name\s*=\s*["']([^"'\n]+)["'])re"};
  std::smatch found;
  if (!std::regex_search(code, found, named)) return "it loads a model in another way than others";
  auto configuration = configuration_of(models, found[1].str());
  if (!configuration) {
    cause = configuration.error().message;
    return "its model has no configuration in the folder of --models";
  }
  auto at = static_cast<size_t>(found.position()) + 1;
  code.insert(at, "CONFIGURATION = " + python_value(*configuration) + "\n");
  static const std::regex configured{R"(AutoConfig\.from_pretrained\(\s*[\w.]+\s*\))"};
  static const std::regex loaded{R"((\w+)\.from_pretrained\([^()]*config\s*=\s*([\w.]+)\s*\))"};
  code = std::regex_replace(code, configured, "AutoConfig.for_model(**CONFIGURATION)");
  code = std::regex_replace(code, loaded, "$1.from_config($2)");
  if (code.find("from_pretrained(") == code.npos) return {};
  return "it loads a model in another way than others";
}

} // namespace

expected<suite_reading> read_kernelbench_suite(const std::string& path,
                                               const suite_options& options) {
  auto only = count_of(options, "--level", 1, max_level, 0);
  KM_TRY(only);
  auto problems = read_kernelbench(path);
  KM_TRY(problems);
  suite_reading result;
  for (auto& x : *problems) {
    if (*only != 0 && x.level != *only) continue;
    std::string reason, cause;
    if (x.code.find(".from_pretrained(") != x.code.npos)
      reason = make_local(x.code, option_of(options, "--models"), cause);
    if (reason.empty())
      result.tasks.push_back({x.id(), task_files_of(x, option_of(options, "--precision"))});
    else
      result.refused.push_back({x.id(), reason, cause.empty() ? reason : cause});
  }
  if (result.tasks.empty() && result.refused.empty())
    return configuration_error("bad_problem",
                               "failed to import from " + path + ": it has no problem of level " +
                                   std::to_string(*only),
                               "leave --level out to import all");
  return result;
}

} // namespace kernelmill
