#include "launch/import/multikernelbench.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
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
constexpr double least_elements = 256;

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
  std::string shape;   ///< equal for cases that differ in nothing that an answer is told
  double elements = 0; ///< of its largest tensor
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

double elements_of(const json& inputs) {
  double result = 0;
  for (const auto& input : inputs) {
    auto shape = input.find("shape");
    if (shape == input.end() || !shape->is_array()) continue;
    double elements = 1;
    for (const auto& x : *shape) elements *= x.is_number() ? x.get<double>() : 0;
    result = std::max(result, elements);
  }
  return result;
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
  const auto& inputs = document["inputs"];
  into.push_back({number, std::string{line}, shape_of(inputs), elements_of(inputs)});
  return {};
}

// Cases of different shapes, in order; without those that are too small to tell right from wrong,
// where there are others.
std::vector<input_case> cases_of(const std::string& text, std::string& reason) {
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
  auto small = [](const input_case& x) { return x.elements < least_elements; };
  if (!std::all_of(result.begin(), result.end(), small)) std::erase_if(result, small);
  return result;
}

// The problem reads its cases from a file beside it; here `open` gives it the one that is wanted.
// Some draw odd cases differently, so an odd one stands in the second line.
std::string with_cases(const std::string& code, const std::vector<suite_case>& cases) {
  return code +
         "\n\n# The shapes of the suite's file of cases: the place in the file, and the line.\n"
         "import io\n\n" +
         text_of_cases(cases) +
         "\n\ndef open(*_, **__):\n    place, line = CASES[AXIS_case]\n"
         "    return io.StringIO((line + \"\\n\") * (1 + place % 2))\n\n\n"
         "def get_inputs():\n    return list(get_input_groups()[-1])\n";
}

// Names of forward's inputs, in order.
std::vector<std::string> inputs_of_forward(std::string_view text) {
  std::vector<std::string> result{""};
  int depth = 0;
  bool in_name = true;
  for (char c : text) {
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (depth < 0) break;
    if (c == ',' && depth == 0) {
      result.emplace_back();
      in_name = true;
    } else if (c == ':' || c == '=') {
      in_name = false;
    } else if (in_name && c != ' ' && c != '\n') {
      result.back() += c;
    }
  }
  return result;
}

// Inputs that forward writes to: "x.scatter_(...)", "x[...] = ...".
std::vector<size_t> mutated_by(const std::string& code) {
  const std::string head = "def forward(self, ";
  auto at = code.find(head);
  if (at == code.npos) return {};
  auto rest = code.substr(at + head.size());
  rest = rest.substr(0, rest.find("\ndef "));
  auto names = inputs_of_forward(rest);
  std::vector<size_t> result;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!is_folder_name(names[i]) || names[i].find_first_of(".-+") != std::string::npos) continue;
    std::regex written{"\\n[ \\t]+(return )?" + names[i] +
                       R"((\.[a-z]\w*[a-z0-9]_\(|\[[^\]\n]*\]\s*=[^=]))"};
    if (std::regex_search(rest, written)) result.push_back(i);
  }
  return result;
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
    std::vector<suite_case> shapes;
    if (code->find("\ndef get_input_groups(") != code->npos) {
      auto cases = read_in_folder(folder, name + ".json", most_cases);
      if (!cases) return "its file of cases is missing, or longer than 16 MiB";
      std::string reason;
      auto all = cases_of(*cases, reason);
      if (!reason.empty()) return reason;
      for (auto& x : spread(std::move(all), most_shapes_))
        shapes.push_back({"case" + std::to_string(x.number), {x.number, std::move(x.line)}});
      *code = with_cases(*code, shapes);
    }
    if (auto missing = missing_of_problem(*code); !missing.empty()) return missing;
    reading_.tasks.push_back(
        {"multikernelbench/" + category + "/" + name, files_of(category, name, *code, shapes)});
    return {};
  }

  static std::vector<task_file> files_of(const std::string& category, const std::string& name,
                                         const std::string& code,
                                         const std::vector<suite_case>& shapes) {
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
    if (auto mutated = mutated_by(code); !mutated.empty()) document["mutates"] = mutated;
    add_variants(document, shapes);
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
  std::filesystem::path root{path};
  std::error_code code;
  if (std::filesystem::is_directory(root / "reference", code)) root /= "reference";
  if (!std::filesystem::is_directory(root, code))
    return configuration_error("missing_file",
                               "failed to read " + path + ": there is no such folder",
                               multikernelbench::what_is_read);
  return multikernelbench::importer{root, *most}.read();
}

} // namespace kernelmill
