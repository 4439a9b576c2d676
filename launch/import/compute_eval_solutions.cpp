// ComputeEval's solutions as candidates of the contract `program`, and verdicts as its graded
// solutions.

#include <algorithm>
#include <map>

#include "launch/import/compute_eval_files.hpp"
#include "launch/import/suite_solutions.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/text.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t largest_answer = size_t{4} << 20;

tl::unexpected<error> bad_solution(const std::string& place, const std::string& cause) {
  return configuration_error(
      "bad_batch", "failed to read " + place + ": " + cause,
      "each line is {\"type\": \"file\", \"task_id\": \"CUDA/31\", \"files\": [{\"path\": "
      "\"solution.cu\", \"content\": \"...\"}]}");
}

// A line that the parser of answers takes for the head of a file.
bool is_file_head(std::string_view line) {
  line = trimmed(line);
  return line.starts_with("// file:") || line.starts_with("# file:");
}

// An answer's text: a section for each file. Names are the candidate's own; its parser checks them.
std::string text_of_files(const json& files, std::string& refused) {
  std::string result;
  for (const auto& x : files) {
    auto path = text_in(x, "path"), content = text_in(x, "content");
    result += (path.ends_with(".py") ? "# file: " : "// file: ") + path + "\n" + content;
    if (!result.ends_with('\n')) result += '\n';
    for (std::string_view rest{content}; !rest.empty();)
      if (is_file_head(next_line(rest)))
        refused = path + " has a line that begins a file of an answer";
    if (path.find_first_of("\r\n") != path.npos) refused = "a path has more than one line";
  }
  return result;
}

expected<suite_candidate> candidate_of(const json& line, const std::string& place) {
  if (line.is_discarded()) return bad_solution(place, "it is no JSON");
  if (!line.is_object()) return bad_solution(place, "it is no object");
  suite_candidate result;
  result.name = text_in(line, "task_id");
  if (!is_problem_id(result.name))
    return bad_solution(place, "task_id is missing, or no task may have it");
  if (line.contains("schema_version") && line["schema_version"] != 1)
    return bad_solution(place, "schema_version is not 1");
  auto type = text_in(line, "type");
  if (type == "patch") {
    if (!line.contains("patch") || !line["patch"].is_string())
      return bad_solution(place, "patch is missing or no text");
    result.source = text_in(line, "patch");
  } else if (type == "file") {
    auto files = line.find("files");
    if (files == line.end() || !files->is_array())
      return bad_solution(place, "files is missing or no list");
    for (const auto& x : *files)
      if (!x.is_object() || !x.contains("path") || !x["path"].is_string() ||
          !x.contains("content") || !x["content"].is_string())
        return bad_solution(place, "a file is no object with the texts path and content");
    result.source = text_of_files(*files, result.refused);
  } else {
    return bad_solution(place, "type is neither file nor patch");
  }
  if (result.source.size() > largest_answer) return bad_solution(place, "it has over 4 MiB");
  result.record = line.dump(-1, ' ', false, json::error_handler_t::replace);
  return result;
}

// The newest release that has each problem, by the ids of the imported tasks.
std::map<std::string, std::string> newest_releases(const std::vector<std::string>& tasks) {
  std::map<std::string, std::string> result;
  for (const auto& id : tasks) {
    auto parts = split(id, '/');
    if (parts.size() != 3 || parts[0] != "compute-eval") continue;
    auto& newest = result[parts[2]];
    // "internal" is older than any release that has a year.
    bool year = !parts[1].empty() && parts[1].front() >= '0' && parts[1].front() <= '9';
    if (newest.empty() || (year && newest < parts[1]) || newest == "internal") newest = parts[1];
  }
  return result;
}

json text_or_null(const std::string& x) {
  return x.empty() ? json(nullptr) : json(x);
}

// What the suite would have printed: the compiler's words, or why there was nothing to compile.
std::string build_words(const graded_candidate& x) {
  if (x.verdict == nullptr) return x.what->refused;
  if (!x.build_log.empty()) return x.build_log;
  std::string result;
  for (const auto& problem : x.verdict->value("format_problems", json::array()))
    if (problem.is_string()) result += problem.get<std::string>() + "\n";
  return result;
}

expected<json> graded_line(const graded_candidate& x) {
  json result{{"task_id", json::parse(x.what->record, nullptr, false).value("task_id", "")}};
  auto problem = compute_eval_record(x.folder);
  KM_TRY(problem);
  const json none = json::object();
  const auto& verdict = x.verdict == nullptr ? none : *x.verdict;
  auto part = [&](const char* key) { return verdict.value(key, json::object()); };
  auto timing = part("timing");
  bool timed = flag_in(timing, "measured", false);
  // The machine lacks what the problem asks for: no fault of the solution.
  bool skipped = text_in(part("error"), "category") == "needs_unmet";
  bool passed = flag_in(verdict, "correct", false) && flag_in(part("integrity"), "clean", false);
  result["passed"] = passed && !skipped;
  result["skipped"] = skipped;
  result["solution"] = json::parse(x.what->record, nullptr, false);
  result["problem"] = std::move(*problem);
  result["build_output"] = text_or_null(build_words(x));
  auto said = text_in(verdict, "output");
  if (said.empty() && !passed) said = text_in(part("error"), "message");
  result["test_output"] = text_or_null(said);
  result["benchmark_output"] = text_or_null(passed && !timed ? text_in(timing, "note") : "");
  auto number = [&](bool known, const json& value) { return known ? value : json(nullptr); };
  result["solution_metrics"] = nullptr;
  result["solution_time"] = number(timed, timing.value("candidate_ms", json(nullptr)));
  result["baseline_metrics"] = nullptr;
  result["baseline_time"] = number(timed, timing.value("reference_ms", json(nullptr)));
  result["speedup"] =
      number(timed, timing.value("speedup", json::object()).value("estimate", json(nullptr)));
  return result;
}

} // namespace

expected<std::vector<suite_candidate>> read_compute_eval_solutions(const std::string& path,
                                                                   const solution_place& where) {
  auto pack = read_compute_eval_pack(path, "solutions.jsonl");
  KM_TRY(pack);
  auto release = release_of_pack(*pack);
  KM_TRY(release);
  if (release->empty()) *release = where.release;
  if (!where.release.empty() && where.release != *release)
    return bad_solution(path, "its release is " + *release + ", not " + where.release);
  std::map<std::string, std::string> newest;
  if (release->empty()) {
    auto tasks = list_tasks(where.roots);
    KM_TRY(tasks);
    newest = newest_releases(*tasks);
  }
  std::vector<suite_candidate> result;
  std::map<std::string, size_t> times;
  std::string_view rest{pack->lines};
  for (size_t number = 1; !rest.empty(); ++number) {
    auto line = next_line(rest);
    if (trimmed(line).empty()) continue;
    auto place = pack->place + ", line " + std::to_string(number);
    if (!is_utf8(line)) return bad_solution(place, "it is not UTF-8");
    if (nests_deeper(line)) return bad_solution(place, "it nests too deep");
    auto one = candidate_of(json::parse(line, nullptr, false), place);
    KM_TRY(one);
    auto folder = compute_eval_id({}, one->name).substr(std::string{"compute-eval//"}.size());
    auto known = newest.find(folder);
    if (release->empty() && known == newest.end())
      return bad_solution(place, "no imported task is " + one->name +
                                     "; `kernelmill task import compute-eval PATH` imports them");
    one->task = compute_eval_id(release->empty() ? known->second : *release, one->name);
    if (auto n = ++times[one->name]; n > 1) one->name += "#" + std::to_string(n);
    result.push_back(std::move(*one));
  }
  return result;
}

expected<std::string> compute_eval_results(const std::string&,
                                           std::span<const graded_candidate> graded) {
  std::string result;
  for (const auto& x : graded) {
    auto line = graded_line(x);
    KM_TRY(line);
    result += line->dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  }
  return result;
}

} // namespace kernelmill
