#include <algorithm>
#include <filesystem>
#include <set>

#include "gpu/task/device_fill.hpp"
#include "gpu/task/task_files.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t max_file_bytes = uint64_t{1} << 20;
constexpr int64_t max_tensor_bytes = int64_t{256} << 20;

std::string position(const std::string& text, size_t byte) {
  size_t end = std::min(byte > 0 ? byte - 1 : 0, text.size());
  auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n') + 1;
  auto start = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  auto column = end - (start == std::string::npos ? 0 : start + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// The one place where nlohmann's exceptions end.
expected<void> parse_into(const std::string& text, const std::string& file, task& x) {
  if (nests_deeper(text))
    return configuration_error("bad_json", "failed to read " + file + ": it nests too deep",
                               "docs/reference/tasks.md lists the keys of a task");
  try {
    auto document = nlohmann::json::parse(text, nullptr, true, true);
    return read_document(document, file, x);
  } catch (const nlohmann::json::parse_error& e) {
    std::string what = e.what();
    auto cause =
        what.rfind(": "); // "[json.exception...] parse error at ...: syntax error ...: cause"
    return configuration_error("bad_json",
                               "failed to read " + file + ", " + position(text, e.byte) + ": " +
                                   (cause == std::string::npos ? what : what.substr(cause + 2)));
  } catch (const std::exception& e) {
    return configuration_error("bad_task", "failed to read " + file + ": " + e.what());
  }
}

bool is_identifier(const std::string& name) {
  auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= 64 && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), word);
}

tl::unexpected<error> bad_file(const std::string& file, const std::string& cause,
                               std::string hint = {}) {
  return configuration_error("bad_task", "failed to read " + file + ": " + cause, std::move(hint));
}

expected<void> check_names(const task& x, const std::string& file) {
  std::set<std::string> seen;
  bool output = false;
  for (const auto& arg : x.arguments) {
    if (!is_identifier(arg.name))
      return bad_file(file, "argument \"" + arg.name + "\" is not a C identifier");
    if (!seen.insert(arg.name).second)
      return bad_file(file, "argument " + arg.name + " is named twice");
    output = output || arg.role == argument_role::output || arg.role == argument_role::inout;
  }
  if (!is_identifier(x.function))
    return bad_file(file, "function \"" + x.function + "\" is not a C identifier");
  if (!output) return bad_file(file, "arguments must hold an output or inout");
  return {};
}

expected<void> check_tensor(const argument& arg, const task_case& c, const std::string& file) {
  auto where = "argument " + arg.name + " in case " + c.name;
  int64_t elements = 1;
  int64_t row = 1;
  for (const auto& dimension : arg.shape) {
    auto size = dimension.evaluate(c.scalars);
    if (!size) return bad_file(file, where + ": " + size.error().message);
    if (*size < 1)
      return bad_file(file, where + ": dimension \"" + dimension.text() + "\" is " +
                                std::to_string(*size));
    row = *size;
    if (__builtin_mul_overflow(elements, *size, &elements) || elements > max_tensor_bytes / 4)
      return bad_file(file, where + ": more than 256 MiB");
  }
  if (arg.fill_range.empty()) return {};
  auto low = arg.fill_range[0].evaluate(c.scalars);
  auto high = arg.fill_range[1].evaluate(c.scalars);
  if (!low || !high) return bad_file(file, where + ": " + (!low ? low : high).error().message);
  if (*low >= *high || *low < INT32_MIN || *high > int64_t{INT32_MAX} + 1)
    return bad_file(file, where + ": fill_range [" + std::to_string(*low) + ", " +
                              std::to_string(*high) + ") is empty or too wide");
  return row <= INT32_MAX ? expected<void>{} : bad_file(file, where + ": a row is too long");
}

// What a machine with a GPU would find out when it times the task, found out everywhere.
expected<void> check_for_gpu(const task& x, const std::string& file) {
  for (size_t i = 0; i < x.arguments.size(); ++i) {
    const auto& arg = x.arguments[i];
    auto place = "arguments[" + std::to_string(i) + "]";
    if (arg.role == argument_role::inout)
      return bad_file(file, place + ".role is \"inout\", and backends names cuda",
                      "GPUs do not time such arguments yet: leave cuda out of backends");
    if (arg.role != argument_role::input) continue;
    const auto& fill = fill_of(arg, x.timed_gpu);
    if (find_device_fill(fill, arg.type)) continue;
    bool own = x.timed_gpu.fills.contains(arg.name);
    return bad_file(file,
                    "timed_gpu.fills." + arg.name +
                        (own ? " is" : " is missing, and " + place + ".fill is") + " \"" + fill +
                        "\", which a GPU cannot make",
                    "a GPU makes: " + joined(device_distributions(arg.type)));
  }
  return {};
}

} // namespace

expected<void> check_signature(const task& x, const std::string& file) {
  if (auto ok = check_names(x, file); !ok) return ok;
  if (x.names("cuda") || x.names("hip"))
    if (auto ok = check_for_gpu(x, file); !ok) return ok;
  auto cases = x.cases;
  cases.push_back(x.timed_cpu);
  if (!x.timed_gpu.scalars.empty()) cases.push_back(x.timed_gpu);
  for (const auto& c : cases) {
    for (const auto& arg : x.arguments)
      if (arg.role != argument_role::scalar)
        if (auto ok = check_tensor(arg, c, file); !ok) return ok;
    for (const auto* formula : {&x.bytes, &x.flops}) {
      auto value = formula->evaluate(c.scalars);
      if (!value)
        return bad_file(file, "bytes or flops in case " + c.name + ": " + value.error().message);
      if (*value < 0)
        return bad_file(file, "bytes or flops in case " + c.name + ": " + formula->text() +
                                  " is negative");
    }
  }
  return {};
}

namespace {

tl::unexpected<error> no_starter(const task& x, const std::string& file, const std::string& name,
                                 const std::string& cause) {
  return bad_file(file, "verb \"" + x.verb + "\" needs a " + name + ", because " + cause,
                  "docs/reference/tasks.md lists the files of a task");
}

// From words alone: a starter would be shown.
expected<void> check_no_starter(const task& x, const std::string& file) {
  for (const auto* text : {&x.starter_cpu, &x.starter_gpu, &x.starter_hip, &x.starter_python})
    if (x.verb == "synthesize" && !text->empty())
      return bad_file(file, "verb \"synthesize\" takes no starter",
                      "prompt.md says what to compute; remove the starter");
  return {};
}

expected<void> check_starters(const task& x, const std::string& file) {
  if (!has_starter(x.verb)) return check_no_starter(x, file);
  if (x.verb == "port") {
    const std::string name = x.port.from == "cpp"    ? "starter.cpp"
                             : x.port.from == "cuda" ? "starter.cu"
                                                     : "starter.hip";
    if (starter_to_port(x).empty()) return no_starter(x, file, name, "port.from is " + x.port.from);
    return {};
  }
  for (const auto& backend : x.backends) {
    bool gpu = backend != "cpu";
    if (!(gpu ? x.starter_gpu : x.starter_cpu).empty()) continue;
    if (backend == "hip" && !x.starter_hip.empty()) continue;
    return no_starter(x, file, gpu ? "starter.cu" : "starter.cpp", "backends names " + backend);
  }
  return {};
}

// The files that only some tasks need.
expected<void> check_files(const task& x, const std::string& file) {
  auto has = [&](const std::string& name) {
    std::error_code ignored;
    return fs::exists(x.directory + "/" + name, ignored);
  };
  for (const std::string backend : {"cuda", "hip"})
    for (const std::string name : {"reference", "baseline"}) {
      bool found = has(name + ".cu") || (backend == "hip" && has(name + ".hip"));
      if (!x.names(backend) || found) continue;
      return bad_file(file,
                      "backends names " + backend + ", but there is no " + x.directory + "/" +
                          name + ".cu",
                      "write it, or leave " + backend +
                          " out of backends; docs/reference/tasks.md lists the files");
    }
  return check_starters(x, file);
}

// One file of a task, by its name.
void take_file(task& x, const std::string& name, const std::string& text) {
  if (name == "prompt.md") x.prompt = text;
  if (name == "problem.py") x.torch.code = text;
  if (name == "starter.cpp") x.starter_cpu = text;
  if (name == "starter.cu") x.starter_gpu = text;
  if (name == "starter.hip") x.starter_hip = text;
  if (name == "starter.py") x.starter_python = text;
}

// Reads the files behind task.json into the task and into the text of its digest.
expected<void> read_files(task& x, std::initializer_list<const char*> names,
                          std::string& defining) {
  for (const std::string name : names) {
    bool optional = name.starts_with("starter.") || name.ends_with(".cu") || name.ends_with(".hip");
    if (optional && !is_in_folder(x.directory, name)) continue;
    auto text = read_in_folder(x.directory, name, max_file_bytes);
    KM_TRY(text);
    // Sizes between the parts, so that no text can move from one file to the next unseen.
    defining += name + ":" + std::to_string(text->size()) + "\n" + *text;
    take_file(x, name, *text);
  }
  return {};
}

expected<void> check_problem(const task& x, const std::string& document) {
  if (has_starter(x.verb) && x.starter_python.empty())
    return no_starter(x, document, "starter.py", "policies begin with it");
  if (auto ok = check_no_starter(x, document); !ok) return ok;
  auto file = "failed to read " + x.directory + "/problem.py: ";
  if (auto missing = missing_of_problem(x.torch.code); !missing.empty())
    return configuration_error("bad_problem", file + missing,
                               "a problem defines class Model, get_inputs and get_init_inputs");
  if (auto missing = missing_constant(x.torch); !missing.empty())
    return configuration_error("bad_problem",
                               file + "it assigns no " + missing +
                                   " at module level, which a variant of task.json sets",
                               "a variant sets constants that the module has");
  return {};
}

expected<task_ptr> load_files(task x) {
  auto file = x.directory + "/task.json";
  if (!is_in_folder(x.directory, "task.json"))
    return configuration_error("unknown_task", "failed to load a task: there is no " + file,
                               "`kernelmill task list` shows all tasks");
  auto document = read_in_folder(x.directory, "task.json", max_file_bytes);
  KM_TRY(document);
  KM_TRY(parse_into(*document, file, x));
  std::string defining = "task.json:" + std::to_string(document->size()) + "\n" + *document;
  bool program = x.contract == contract_kind::program;
  auto read = program ? read_files(x, {"prompt.md"}, defining)
              : x.contract == contract_kind::torch
                  ? read_files(x, {"prompt.md", "problem.py", "starter.py"}, defining)
                  : read_files(x,
                               {"prompt.md", "reference.cpp", "baseline.cpp", "starter.cpp",
                                "reference.cu", "baseline.cu", "starter.cu", "reference.hip",
                                "baseline.hip", "starter.hip"},
                               defining);
  KM_TRY(read);
  auto ok = program                              ? read_program_folders(x, defining)
            : x.contract == contract_kind::torch ? check_problem(x, file)
                                                 : check_files(x, file);
  KM_TRY(ok);
  x.digest = sha256_hex(defining);
  judging_terms first;
  first.backend = x.names("cpu") ? "cpu" : x.backends.front();
  return on_terms(x, std::move(first));
}

} // namespace

expected<task_ptr> load_task(const std::string& tasks_root, const std::string& id) {
  auto below = fs::path{id}.lexically_normal();
  if (id.empty() || below.is_absolute() || *below.begin() == "..")
    return configuration_error("unknown_task",
                               "failed to load task \"" + id +
                                   "\": a task is named by its folder below " + tasks_root,
                               "`kernelmill task list` shows all tasks");
  task x;
  x.id = below.generic_string();
  // Absolute, because the referee that is told of it works elsewhere.
  std::error_code ignored;
  x.directory = fs::absolute(fs::path{tasks_root} / below, ignored).lexically_normal().string();
  return load_files(std::move(x));
}

expected<task_ptr> load_task_folder(const std::string& directory) {
  task x;
  std::error_code ignored;
  x.directory = fs::absolute(directory, ignored).lexically_normal().string();
  while (x.directory.size() > 1 && x.directory.back() == '/') x.directory.pop_back();
  auto loaded = load_files(std::move(x));
  if (loaded && !("/" + (*loaded)->directory).ends_with("/" + (*loaded)->id))
    return bad_file((*loaded)->directory + "/task.json",
                    "id \"" + (*loaded)->id + "\" is not the end of the folder's path");
  return loaded;
}

expected<std::vector<std::string>> list_tasks(const std::string& tasks_root) {
  std::error_code problem;
  fs::recursive_directory_iterator entries{tasks_root, problem};
  if (problem)
    return configuration_error("missing_file",
                               "failed to list tasks in " + tasks_root + ": " + problem.message(),
                               "name the folder of tasks with `tasks.root`");
  std::vector<std::string> ids;
  for (auto end = fs::recursive_directory_iterator{}; entries != end; entries.increment(problem)) {
    if (problem) break;
    if (entries->path().filename().string().starts_with(".")) {
      entries.disable_recursion_pending();
      continue;
    }
    if (entries->path().filename() == "task.json")
      ids.push_back(
          fs::relative(entries->path().parent_path(), tasks_root, problem).generic_string());
  }
  if (problem)
    return configuration_error("missing_file",
                               "failed to list tasks in " + tasks_root + ": " + problem.message());
  std::sort(ids.begin(), ids.end());
  return ids;
}

} // namespace kernelmill
