#include "launch/import/multikernelbench.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "gpu/task/task.hpp"
#include "launch/import/import_words.hpp"
#include "launch/import/shapes.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "messages/base/utf8.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace multikernelbench {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t most_code = 512 << 10;
constexpr uint64_t most_cases = 16 << 20;

constexpr const char* what_is_read =
    "give a checkout of MultiKernelBench; it has reference/CATEGORY/NAME.py";

struct category_family {
  const char* category;
  const char* family;
};

constexpr category_family families[] = {
    {"activation", "activation"},
    {"arch", "network"},
    {"attention", "attention"},
    {"convolution", "convolution"},
    {"fuse", "fusion"},
    {"index", "gather"},
    {"loss", "loss"},
    {"matmul", "matmul"},
    {"normalization", "normalization"},
    {"pooling", "pooling"},
    {"reduce", "reduction"},
    {"resize", "layout"},
    {"npukernelbench_level2", "fusion"},
    {"npukernelbench_level3", "fusion"},
    {"npukernelbench_level4", "network"},
};

std::string family_of(const std::string& category) {
  for (const auto& x : families)
    if (category == x.category) return x.family;
  return "elementwise";
}

/// One line of a file of cases.
struct input_case {
  size_t number = 0; ///< from 0, of lines that are not blank
  std::string line;
  std::string shape; ///< equal for cases that differ in nothing that an answer is told
};

// What an answer sees of a case: types, shapes and plain values, but not how values are drawn.
std::string shape_of(const json& inputs) {
  auto result = json::array();
  for (const auto& input : inputs) {
    auto& seen = result.emplace_back(json::object());
    for (const char* key : {"name", "type", "dtype", "shape", "value"})
      if (auto found = input.find(key); found != input.end()) seen[key] = *found;
  }
  return result.dump();
}

// The reason why a line is no case; else it is appended.
std::string read_case(std::string_view line, std::vector<input_case>& into, size_t number) {
  if (nests_deeper(line)) return "a line of its cases nests too deep";
  auto document = json::parse(line, nullptr, false);
  if (!document.is_object() || !document.contains("inputs") || !document["inputs"].is_array())
    return "a line of its cases is no object with inputs";
  for (const auto& input : document["inputs"]) {
    if (!input.is_object()) return "an input of its cases is no object";
    if (input.value("type", json{}) == "tensor_list") return "it has a list of tensors as an input";
  }
  into.push_back({number, std::string{line}, shape_of(document["inputs"])});
  return {};
}

// Cases of different shapes, in order.
expected<std::vector<input_case>> cases_of(const std::string& text, std::string& reason) {
  std::vector<input_case> result;
  std::set<std::string> seen;
  std::string_view rest = text;
  for (size_t number = 0; !rest.empty() && reason.empty();) {
    auto line = trimmed(next_line(rest));
    if (line.empty()) continue;
    std::vector<input_case> one;
    reason = read_case(line, one, number++);
    if (reason.empty() && seen.insert(one.front().shape).second)
      result.push_back(std::move(one.front()));
  }
  if (reason.empty() && result.empty()) reason = "its file of cases is empty";
  return result;
}

// The problem reads its cases from a file beside it; here `open` gives it the one that is wanted.
// Some draw odd cases differently, so an odd one stands in the second line.
std::string with_cases(const std::string& code, const std::vector<input_case>& cases) {
  std::string result = code +
                       "\n\n# The shapes of the suite's file of cases.\n"
                       "import io\n\nAXIS_case = " +
                       std::to_string(cases.front().number) + "\nCASES = {\n";
  for (const auto& x : cases)
    result += "    " + std::to_string(x.number) + ": " + python_literal(x.line) + ",\n";
  return result + "}\n\n\ndef open(*_, **__):\n"
                  "    return io.StringIO((CASES[AXIS_case] + \"\\n\") * (1 + AXIS_case % 2))\n\n\n"
                  "def get_inputs():\n    return list(get_input_groups()[-1])\n";
}

bool needs_npu(const std::string& code) {
  return code.find("import torch_npu") != code.npos || code.find(".npu(") != code.npos;
}

class importer {
public:
  importer(fs::path root, size_t most_shapes) : root_(std::move(root)), most_shapes_(most_shapes) {
    // nop
  }

  expected<suite_reading> read() {
    std::error_code code;
    std::vector<fs::path> files;
    for (const auto& folder : fs::directory_iterator{root_, code}) {
      std::error_code ignored;
      if (!folder.is_directory(ignored) || folder.is_symlink(ignored)) continue;
      for (const auto& file : fs::directory_iterator{folder.path(), ignored})
        if (file.path().extension() == ".py" && !file.path().filename().string().starts_with("_"))
          files.push_back(file.path());
    }
    if (code || files.empty())
      return configuration_error("missing_file",
                                 "failed to find problems in " + root_.string() +
                                     ": there is no CATEGORY/NAME.py",
                                 what_is_read);
    std::sort(files.begin(), files.end());
    for (const auto& x : files) add(x);
    return std::move(reading_);
  }

private:
  void add(const fs::path& file) {
    auto category = file.parent_path().filename().string();
    auto name = file.stem().string();
    auto problem = category + "/" + name;
    if (auto reason = take(file, category, name); !reason.empty())
      reading_.refused.push_back({problem, reason, reason});
  }

  // The reason why it is refused; empty: it became a task.
  std::string take(const fs::path& file, const std::string& category, const std::string& name) {
    if (!is_folder_name(name) || !is_folder_name(category)) return "its name is none for a folder";
    auto folder = file.parent_path().string();
    auto code = read_in_folder(folder, file.filename().string(), most_code);
    if (!code) return "its file cannot be read, or is longer than 512 KiB";
    if (!is_utf8(*code)) return "its text is no UTF-8";
    if (needs_npu(*code)) return "it needs torch_npu, and with it an NPU";
    suite_shapes shapes;
    if (code->find("\ndef get_input_groups(") != code->npos) {
      auto cases = read_in_folder(folder, name + ".json", most_cases);
      if (!cases) return "its file of cases is missing, or longer than 16 MiB";
      std::string reason;
      auto all = cases_of(*cases, reason);
      if (!reason.empty()) return reason;
      auto kept = spread(std::move(*all), most_shapes_);
      *code = with_cases(*code, kept);
      for (size_t i = 1; i < kept.size(); ++i)
        shapes.add("case" + std::to_string(kept[i].number), {{"AXIS_case", kept[i].number}});
    }
    if (auto missing = missing_of_problem(*code); !missing.empty()) return missing;
    reading_.tasks.push_back(
        {"multikernelbench/" + category + "/" + name, files_of(category, name, *code, shapes)});
    return {};
  }

  static std::vector<task_file> files_of(const std::string& category, const std::string& name,
                                         const std::string& code, const suite_shapes& shapes) {
    nlohmann::ordered_json document = {
        {"schema_version", 1},
        {"id", "multikernelbench/" + category + "/" + name},
        {"title", name},
        {"verb", "optimize"},
        {"operator_family", family_of(category)},
        {"contract", "torch"},
        {"backends", {"cpu", "cuda"}},
        {"source", "multikernelbench"},
        {"suite", "multikernelbench"},
        {"precision", "own"},
    };
    shapes.write(document);
    return {{"task.json", document.dump(2) + "\n"},
            {"problem.py", code},
            {"prompt.md", "Problem " + name + " of MultiKernelBench, category " + category +
                              ".\n\nBelow stands a PyTorch module, `Model`, with the functions "
                              "that make its inputs. Write a module\n`ModelNew` that computes "
                              "the same from the same inputs in less time.\n"}};
  }

  fs::path root_;
  size_t most_shapes_;
  suite_reading reading_;
};

} // namespace

} // namespace multikernelbench

expected<suite_reading> read_multikernelbench(const std::string& path,
                                              const suite_options& options) {
  auto most = count_of(options, "--shapes", 1, most_suite_shapes, usual_suite_shapes);
  KM_TRY(most);
  fs::path root{path};
  std::error_code code;
  if (fs::is_directory(root / "reference", code)) root /= "reference";
  if (!fs::is_directory(root, code))
    return configuration_error("missing_file",
                               "failed to read " + path + ": there is no such folder",
                               multikernelbench::what_is_read);
  return multikernelbench::importer{root, *most}.read();
}

} // namespace kernelmill
