#include "launch/import/robust_kbench.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "gpu/task/task.hpp"
#include "launch/import/import_words.hpp"
#include "launch/import/shapes.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/utf8.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace robust_kbench {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr uint64_t most_code = 512 << 10;
constexpr size_t deepest_folder = 4;
constexpr size_t most_folders = 20'000;

constexpr const char* what_is_read =
    "give a checkout of robust-kbench, or a folder that has func_forward.py and "
    "config_forward.json";

// Behind the suite's own text.
constexpr const char* configurations = "\n\n# The suite's configurations.\n";

constexpr const char* inputs_of_forward = R"(

_suite_inputs = get_inputs
_suite_model = Model


def get_init_inputs():
    given = CASES[AXIS_case]["init"]
    known = list(inspect.signature(_suite_model.__init__).parameters.values())[1:]
    return [given.get(x.name, x.default) for x in known]


def get_inputs():
    drawn = _suite_inputs(**CASES[AXIS_case]["inputs"])
    return [x.detach() if isinstance(x, torch.Tensor) else x for x in drawn]
)";

constexpr const char* gradients = R"(

# The task: gradients of the inputs that float and of the parameters, in this order.
_Forward = Model


class Model(nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.of = _Forward(*arguments)

    def forward(self, *inputs, fn=forward_fn):
        *inputs, gradient = inputs
        with torch.enable_grad():
            given = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
            wanted = [x for x in (*given, *self.of.parameters()) if x.requires_grad]
            found = torch.autograd.grad(self.of(*given, fn=fn), wanted, gradient, allow_unused=True)
        return [x for x in found if x is not None]
)";

constexpr const char* inputs_of_backward = R"(

_inputs_of_forward = get_inputs
SHAPES = []


def get_inputs():
    inputs = _inputs_of_forward()
    if not SHAPES:  # of the output, found once and without a trace in the generators
        with torch.random.fork_rng(), torch.no_grad():
            of_shape = _Forward(*get_init_inputs()).to(inputs[0].device)
            SHAPES.append(of_shape(*inputs).shape)
    return [*inputs, torch.randn(SHAPES[0])]
)";

bool is_value(const ordered_json& x) {
  return x.is_null() || x.is_boolean() || x.is_number() || x.is_string() ||
         (x.is_array() && std::all_of(x.begin(), x.end(), [](const auto& y) {
            return y.is_boolean() || y.is_number() || y.is_string();
          }));
}

// A list of objects of plain values; empty where the key is missing or holds something else.
std::vector<ordered_json> list_at(const ordered_json& document, const std::string& key) {
  std::vector<ordered_json> result;
  auto found = document.find(key);
  if (found == document.end() || !found->is_array()) return {};
  for (const auto& x : *found) {
    if (!x.is_object() || !std::all_of(x.begin(), x.end(), is_value)) return {};
    result.push_back(x);
  }
  return result;
}

// The suite's product of configurations; what is shared goes to both and wins.
void add_product(const ordered_json& document, const std::string& prefix,
                 std::vector<suite_case>& into) {
  constexpr size_t most_products = 4096;
  for (const auto& init : list_at(document, prefix + "_init_configs"))
    for (const auto& input : list_at(document, prefix + "_input_configs"))
      for (const auto& shared : list_at(document, prefix + "_shared_configs")) {
        if (into.size() >= most_products) return;
        ordered_json value = {{"inputs", input}, {"init", init}};
        value["inputs"].update(shared);
        value["init"].update(shared);
        into.push_back({"", std::move(value)});
      }
}

// The configurations of a file, the single one first; `reason` says why there are none.
std::vector<suite_case> cases_of(const std::string& text, size_t most, std::string& reason) {
  reason = "its configurations are no JSON";
  if (nests_deeper(text)) return {};
  auto document = ordered_json::parse(text, nullptr, false);
  if (!document.is_object()) return {};
  std::vector<suite_case> all;
  add_product(document, "single", all);
  reason = "its configurations lack a single one of plain values";
  if (all.empty()) return {};
  reason.clear();
  add_product(document, "multi", all);
  std::set<std::string> seen;
  std::erase_if(all, [&](const suite_case& x) { return !seen.insert(x.value.dump()).second; });
  all = spread(std::move(all), most);
  for (size_t i = 1; i < all.size(); ++i) all[i].name = "configuration" + std::to_string(i);
  return all;
}

class importer {
public:
  importer(fs::path root, size_t most_shapes) : root_(std::move(root)), most_shapes_(most_shapes) {
    // nop
  }

  expected<suite_reading> read() {
    auto folders = problem_folders();
    if (folders.empty())
      return configuration_error("missing_file",
                                 "failed to find tasks in " + root_.string() +
                                     ": there is no func_forward.py",
                                 what_is_read);
    for (const auto& x : folders) {
      add(x, "forward");
      if (is_in_folder(x.string(), "func_backward.py")) add(x, "backward");
    }
    return std::move(reading_);
  }

private:
  std::vector<fs::path> problem_folders() const {
    std::vector<fs::path> result;
    if (is_in_folder(root_.string(), "func_forward.py")) return {root_};
    std::error_code code;
    size_t looked = 0;
    for (auto at = fs::recursive_directory_iterator{root_, code};
         !code && at != fs::recursive_directory_iterator{} && ++looked < most_folders;
         at.increment(code)) {
      std::error_code ignored;
      if (!at->is_directory(ignored) || at->is_symlink(ignored)) continue;
      if (is_in_folder(at->path().string(), "func_forward.py")) result.push_back(at->path());
      if (at.depth() + 1 >= static_cast<int>(deepest_folder)) at.disable_recursion_pending();
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  void add(const fs::path& folder, const std::string& direction) {
    auto name =
        folder == root_ ? folder.filename().string() : fs::relative(folder, root_).generic_string();
    if (direction == "backward") name += "_backward";
    if (auto reason = take(folder, name, direction); !reason.empty())
      reading_.refused.push_back({name, reason, reason});
  }

  // The reason why it is refused; empty: it became a task.
  std::string take(const fs::path& folder, const std::string& name, const std::string& direction) {
    fs::path path{name};
    if (!std::all_of(path.begin(), path.end(),
                     [](const auto& x) { return is_folder_name(x.string()); }))
      return "its name is none for a folder";
    auto code = read_in_folder(folder.string(), "func_" + direction + ".py", most_code);
    if (!code) return "its file cannot be read, or is longer than 512 KiB";
    if (!is_utf8(*code)) return "its text is no UTF-8";
    auto configs = read_in_folder(folder.string(), "config_" + direction + ".json", most_code);
    if (!configs) return "its configurations are missing, or longer than 512 KiB";
    std::string reason;
    auto cases = cases_of(*configs, most_shapes_, reason);
    if (!reason.empty()) return reason;
    bool backward = direction == "backward";
    for (const std::string needed : {"def forward_fn", "class Model", "def get_inputs"})
      if (code->find("\n" + needed) == code->npos) return "it lacks " + needed;
    if (backward && code->find("\nclass AutogradFunction") == code->npos)
      return "it lacks class AutogradFunction";
    // The class of gradients takes the name Model, to which super() must not be bound.
    if (backward)
      *code = std::regex_replace(*code, std::regex{R"(super\(Model,\s*self\))"}, "super()");
    auto text = *code + configurations + "import inspect\n\n" + text_of_cases(cases) +
                inputs_of_forward + (backward ? gradients : "") +
                (backward ? inputs_of_backward : "");
    reading_.tasks.push_back({"robust-kbench/" + name, files_of(name, text, cases, backward)});
    return {};
  }

  static std::vector<task_file> files_of(const std::string& name, const std::string& code,
                                         const std::vector<suite_case>& cases, bool backward) {
    ordered_json document = {
        {"schema_version", 1},
        {"id", "robust-kbench/" + name},
        {"title", name},
        {"verb", "optimize"},
        {"operator_family", "fusion"},
        {"contract", "torch"},
        {"backends", {"cpu", "cuda"}},
        {"source", "robust-kbench"},
        {"suite", "robust-kbench"},
        {"precision", precision_of_problem(code)},
        {"tolerance", {{"absolute", 1e-5}, {"relative", 1e-5}}},
    };
    add_variants(document, cases);
    return {{"task.json", document.dump(2) + "\n"},
            {"problem.py", code},
            {"prompt.md",
             "Task " + name + " of robust-kbench" + (backward ? ", the backward pass" : "") +
                 ".\n\nBelow stands a PyTorch module, `Model`, with the functions that make its "
                 "inputs. Write a module\n`ModelNew` that computes the same from the same inputs "
                 "in less time.\n"}};
  }

  fs::path root_;
  size_t most_shapes_;
  suite_reading reading_;
};

} // namespace

} // namespace robust_kbench

expected<suite_reading> read_robust_kbench(const std::string& path, const suite_options& options) {
  auto most = count_of(options, "--shapes", 1, most_suite_shapes, usual_suite_shapes);
  KM_TRY(most);
  std::error_code code;
  auto root = std::filesystem::absolute(path, code).lexically_normal();
  if (!root.has_filename()) root = root.parent_path(); // "tasks/"
  if (std::filesystem::is_directory(root / "tasks", code)) root /= "tasks";
  return robust_kbench::importer{root, *most}.read();
}

std::string robust_kbench_answer(const std::string& problem, const std::string& source) {
  bool backward = problem.find(robust_kbench::gradients) != problem.npos;
  auto text = problem.substr(0, problem.find(robust_kbench::configurations));
  text += "\n\nfrom torch.utils.cpp_extension import load_inline\n\nSOURCE = " +
          python_literal(source) +
          "\n_module = load_inline(name=\"answer\", cpp_sources=\"\", cuda_sources=SOURCE,\n"
          "                      extra_cuda_cflags=[\"-O3\", \"--use_fast_math\"])\n";
  if (backward)
    text += std::string{robust_kbench::gradients} +
            "\n\nAutogradFunction.backward_fn = _module.backward\n";
  text += std::string{"\n\nclass ModelNew(Model):\n    def forward(self, *inputs):\n"
                      "        return super().forward(*inputs, fn="} +
          (backward ? "AutogradFunction.apply" : "_module.forward") + ")\n";
  return text;
}

} // namespace kernelmill
