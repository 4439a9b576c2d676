#include "launch/import/gpu_mode.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "launch/import/gpu_mode_text.hpp"
#include "launch/import/import_words.hpp"
#include "launch/import/shapes.hpp"
#include "launch/import/yaml.hpp"
#include "messages/base/utf8.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace gpu_mode {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr uint64_t most_code = 512 << 10;
constexpr size_t deepest_folder = 4;
constexpr size_t most_folders = 20'000;
constexpr size_t most_specs = 1000;

constexpr const char* what_is_read =
    "give a checkout of reference-kernels, or a folder that has task.yml and reference.py";

// What the suite's modules give to a reference. Its check is not called, and results need not be
// the same bits each time.
constexpr const char* preamble = R"(import contextlib

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
input_t = output_t = object
DeterministicContext = DisableCuDNNTF32 = contextlib.nullcontext


def make_match_reference(*_, **__):
    return None


match_reference = verbose_allclose = verbose_allequal = make_match_reference

# The suite's reference.
)";

constexpr const char* inputs = R"(

def get_init_inputs():
    return []


def get_inputs():
    # No larger than the suite's own, for some inputs grow with it.
    seed = int(torch.randint(0, 2**17, (1,), device="cpu"))
    data = generate_input(**CASES[AXIS_case], **SEED(seed))
    return list(data) if isinstance(data, (tuple, list)) else [data]
)";

std::string model_of(const reference_text& x) {
  std::string result = "\n\nclass Model(torch.nn.Module):\n    def forward(self, *data):\n";
  result += x.takes_tuple ? "        output = ref_kernel(data)\n"
                          : "        output = ref_kernel(*data)\n";
  // The suite compares values: a reference may have more digits than the output that is given.
  for (auto i : x.copied) {
    auto given = "data[" + std::to_string(i) + "]";
    result += "        output = output.to(" + given + ".dtype)\n";
    result += "        " + given + ".copy_(output)\n";
  }
  return result + "        return output\n";
}

bool is_plain(const ordered_json& x) {
  return x.is_null() || x.is_boolean() || x.is_number() || x.is_string();
}

struct specs {
  std::vector<suite_case> cases; ///< benchmarks, then tests; different ones
  bool has_seed = false;
};

// The suite's benchmarks and tests, without their seeds. Returns the reason why they are none.
std::string read_specs(const ordered_json& document, specs& into) {
  std::set<std::string> seen;
  for (const std::string key : {"benchmarks", "tests"}) {
    auto list = document.find(key);
    if (list == document.end() || !list->is_array() || list->empty() || list->size() > most_specs)
      return "its task.yml lacks a list of " + key;
    for (size_t i = 0; i < list->size(); ++i) {
      auto spec = (*list)[i];
      if (!spec.is_object()) return "its task.yml has a shape that is no mapping";
      for (const auto& [name, value] : spec.items())
        if (!is_plain(value) &&
            !(value.is_array() && std::all_of(value.begin(), value.end(), is_plain)))
          return "its task.yml has a shape of other than plain values";
      into.has_seed |= spec.erase("seed") > 0;
      if (!seen.insert(spec.dump()).second) continue;
      auto name = key.substr(0, key.size() - 1) + std::to_string(i);
      into.cases.push_back({name, std::move(spec), key == "benchmarks"});
    }
  }
  return {};
}

// Some of the benchmarks, with the first, and some of the tests: half of each, where there are
// more.
std::vector<suite_case> chosen(std::vector<suite_case> all, size_t most) {
  auto middle = std::partition_point(all.begin(), all.end(), [](const auto& x) { return x.timed; });
  std::vector<suite_case> timed(all.begin(), middle);
  std::vector<suite_case> tests(middle, all.end());
  auto half = std::max<size_t>(1, most - std::min(most / 2, tests.size()));
  timed = spread(std::move(timed), half);
  if (timed.size() < most) {
    tests = spread(std::move(tests), most - timed.size());
    timed.insert(timed.end(), tests.begin(), tests.end());
  }
  return timed;
}

std::string text_at(const ordered_json& document, const std::string& key) {
  auto found = document.find(key);
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

class importer {
public:
  importer(fs::path root, size_t most_shapes) : root_(std::move(root)), most_shapes_(most_shapes) {
    // nop
  }

  expected<suite_reading> read() {
    auto folders = problem_folders();
    if (folders.empty())
      return configuration_error(
          "missing_file", "failed to find problems in " + root_.string() + ": there is no task.yml",
          what_is_read);
    for (const auto& x : folders) {
      auto name = x == root_ ? x.filename().string() : fs::relative(x, root_).generic_string();
      std::string cause;
      if (auto reason = take(x, name, cause); !reason.empty())
        reading_.refused.push_back({name, reason, cause.empty() ? reason : cause});
    }
    return std::move(reading_);
  }

private:
  std::vector<fs::path> problem_folders() const {
    std::vector<fs::path> result;
    if (is_in_folder(root_.string(), "task.yml")) return {root_};
    std::error_code code;
    size_t looked = 0;
    for (auto at = fs::recursive_directory_iterator{root_, code};
         !code && at != fs::recursive_directory_iterator{} && ++looked < most_folders;
         at.increment(code)) {
      std::error_code ignored;
      if (!at->is_directory(ignored) || at->is_symlink(ignored)) continue;
      if (is_in_folder(at->path().string(), "task.yml")) result.push_back(at->path());
      if (at.depth() + 1 >= static_cast<int>(deepest_folder)) at.disable_recursion_pending();
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  // The reason why it is refused; empty: it became a task.
  std::string take(const fs::path& folder, const std::string& name, std::string& cause) {
    fs::path path{name};
    if (!std::all_of(path.begin(), path.end(),
                     [](const auto& x) { return is_folder_name(x.string()); }))
      return "its name is none for a folder";
    auto yaml = read_in_folder(folder.string(), "task.yml", most_code);
    if (!yaml) return "its task.yml cannot be read, or is longer than 512 KiB";
    auto document = json_of_yaml(*yaml, (folder / "task.yml").string());
    if (!document) {
      cause = document.error().message;
      return "its task.yml is no YAML";
    }
    if (!document->is_object()) return "its task.yml is no mapping";
    if (auto language = text_at(*document, "lang"); language != "py")
      return language == "cu" ? "its language is C++" : "its task.yml names no language";
    if (document->contains("multi_gpu") || yaml->find("world_size") != yaml->npos)
      return "it needs several GPUs";
    specs known;
    if (auto reason = read_specs(*document, known); !reason.empty()) return reason;
    auto reference = read_in_folder(folder.string(), "reference.py", most_code);
    auto types = read_in_folder(folder.string(), "task.py", most_code);
    if (!reference) return "its reference.py is missing, or longer than 512 KiB";
    if (!is_utf8(*reference)) return "its text is no UTF-8";
    reference_text text;
    if (auto reason = read_reference(*reference, types.value_or(""), text); !reason.empty())
      return reason;
    known.cases = chosen(std::move(known.cases), most_shapes_);
    reading_.tasks.push_back({"gpu-mode/" + name, files_of(name, *document, text, known)});
    return {};
  }

  static std::vector<task_file> files_of(const std::string& name, const ordered_json& yaml,
                                         const reference_text& text, const specs& known) {
    ordered_json document = {
        {"schema_version", 1},
        {"id", "gpu-mode/" + name},
        {"title", fs::path{name}.filename().string()},
        {"verb", "optimize"},
        {"operator_family", "fusion"},
        {"contract", "torch"},
        {"backends", {"cpu", "cuda"}},
        {"source", "reference-kernels"},
        {"suite", "gpu-mode"},
        {"precision", "own"},
        {"entry",
         {{"function", "custom_kernel"}, {"takes", text.takes_tuple ? "tuple" : "arguments"}}},
    };
    if (text.code.find(".cuda(") != text.code.npos) document["backends"] = {"cuda"};
    if (!text.mutates.empty()) document["mutates"] = text.mutates;
    if (text.tolerance)
      document["tolerance"] = {{"absolute", text.tolerance->absolute},
                               {"relative", text.tolerance->relative}};
    add_variants(document, known.cases);
    std::string seeded = inputs;
    seeded.replace(seeded.find(", **SEED(seed)"), 14, known.has_seed ? ", seed=seed" : "");
    auto code = preamble + text.code + "\n\n# Its shapes: benchmarks first, then tests.\n" +
                text_of_cases(known.cases) + model_of(text) + seeded;
    return {{"task.json", document.dump(2) + "\n"},
            {"problem.py", code},
            {"prompt.md", "Problem " + name + " of GPU MODE.\n\n" +
                              std::string{text_at(yaml, "description")} + "\n"}};
  }

  fs::path root_;
  size_t most_shapes_;
  suite_reading reading_;
};

} // namespace

} // namespace gpu_mode

expected<suite_reading> read_gpu_mode(const std::string& path, const suite_options& options) {
  auto most = count_of(options, "--shapes", 1, most_suite_shapes, usual_suite_shapes);
  KM_TRY(most);
  std::error_code code;
  auto root = std::filesystem::absolute(path, code).lexically_normal();
  if (!root.has_filename()) root = root.parent_path();
  if (std::filesystem::is_directory(root / "problems", code)) root /= "problems";
  return gpu_mode::importer{root, *most}.read();
}

} // namespace kernelmill
