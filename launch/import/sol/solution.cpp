#include "launch/import/sol/solution.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "messages/base/json_depth.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill::sol {

namespace {

using nlohmann::json;

constexpr size_t most_solution = 4 << 20;
constexpr size_t most_sources = 32;
constexpr size_t most_flags = 64;

tl::unexpected<error> malformed(const std::string& place, const std::string& cause) {
  return configuration_error("bad_solution", "failed to read " + place + ": " + cause,
                             "docs/how-to/use-sol-execbench.md describes a solution's keys");
}

tl::unexpected<error> unsupported(const std::string& place, const std::string& cause) {
  return configuration_error("unsupported_solution", "failed to take " + place + ": " + cause,
                             "docs/how-to/use-sol-execbench.md lists what can be judged");
}

struct source {
  std::string path;
  std::string content;
};

struct parsed_solution {
  std::string place;
  std::string name;
  std::string definition;
  std::vector<std::string> languages;
  std::string entry_file;
  std::string entry_name;
  std::string binding;
  std::vector<std::string> dependencies;
  std::vector<std::string> cflags, cuda_cflags, ld_flags;
  bool passes_outputs = true; ///< outputs are its last arguments
  std::vector<source> sources;

  bool has_language(std::initializer_list<const char*> names) const {
    return std::any_of(languages.begin(), languages.end(), [&](const auto& x) {
      return std::any_of(names.begin(), names.end(), [&](const char* name) { return x == name; });
    });
  }
  bool is_compiled() const {
    return has_language({"cuda_cpp", "cuda", "cpp", "cutlass", "cudnn", "cublas"});
  }
};

expected<std::string> text_at(const json& from, const char* key, const std::string& place,
                              bool needed = true) {
  auto found = from.find(key);
  if (found == from.end() || found->is_null()) {
    if (!needed) return std::string{};
    return malformed(place, std::string{key} + " is missing");
  }
  if (!found->is_string() || found->get_ref<const std::string&>().empty())
    return malformed(place, std::string{key} + " is no text");
  return found->get<std::string>();
}

expected<std::vector<std::string>> texts_at(const json& from, const char* key,
                                            const std::string& place) {
  std::vector<std::string> result;
  auto found = from.find(key);
  if (found == from.end() || found->is_null()) return result;
  if (!found->is_array() || found->size() > most_flags)
    return malformed(place, std::string{key} + " is no list of up to 64 texts");
  for (const auto& one : *found) {
    if (!one.is_string()) return malformed(place, std::string{key} + " has what is no text");
    result.push_back(one.get<std::string>());
  }
  return result;
}

// Sources are written to a folder of the candidate's: none may leave it.
bool is_path_below(const std::string& path) {
  std::filesystem::path x{path};
  if (path.empty() || path.size() > 200 || x.is_absolute() || path.back() == '/') return false;
  if (std::any_of(x.begin(), x.end(), [](const auto& part) { return part == ".."; })) return false;
  return std::all_of(path.begin(), path.end(), [](unsigned char c) {
    return c < 128 && (std::isalnum(c) || std::string_view{"_-+./"}.find(static_cast<char>(c)) !=
                                              std::string_view::npos);
  });
}

expected<void> read_sources(const json& document, parsed_solution& x) {
  auto found = document.find("sources");
  if (found == document.end() || !found->is_array() || found->empty() ||
      found->size() > most_sources)
    return malformed(x.place, "sources is no list of 1 to 32 files");
  std::set<std::string> seen;
  for (const auto& one : *found) {
    if (!one.is_object()) return malformed(x.place, "sources has what is no object");
    auto path = text_at(one, "path", x.place);
    KM_TRY(path);
    auto content = text_at(one, "content", x.place);
    KM_TRY(content);
    if (!is_path_below(*path))
      return malformed(x.place, "sources has the path \"" + *path + "\", which may not be written");
    auto plain = std::filesystem::path{*path}.lexically_normal().generic_string();
    if (!seen.insert(plain).second) return malformed(x.place, "sources names " + plain + " twice");
    x.sources.push_back({plain, *content});
  }
  if (!seen.contains(x.entry_file))
    return malformed(x.place, "entry_point names " + x.entry_file + ", which is none of sources");
  return {};
}

expected<void> read_spec(const json& spec, parsed_solution& x) {
  auto entry = text_at(spec, "entry_point", x.place);
  KM_TRY(entry);
  auto at = entry->find("::");
  if (at == entry->npos || entry->find("::", at + 2) != entry->npos)
    return malformed(x.place, "entry_point is \"" + *entry + "\", not \"file::function\"");
  x.entry_file = std::filesystem::path{entry->substr(0, at)}.lexically_normal().generic_string();
  x.entry_name = entry->substr(at + 2);
  if (x.entry_name != "run" && !is_free_name(x.entry_name))
    return malformed(x.place, "entry_point names no function");
  auto one = text_at(spec, "language", x.place, false);
  KM_TRY(one);
  auto several = texts_at(spec, "languages", x.place);
  KM_TRY(several);
  x.languages = std::move(*several);
  if (!one->empty()) x.languages.push_back(*one);
  if (x.languages.empty()) return malformed(x.place, "spec.languages is missing");
  auto binding = text_at(spec, "binding", x.place, false);
  KM_TRY(binding);
  x.binding = *binding;
  auto dependencies = texts_at(spec, "dependencies", x.place);
  KM_TRY(dependencies);
  x.dependencies = std::move(*dependencies);
  if (auto style = spec.find("destination_passing_style"); style != spec.end()) {
    if (!style->is_boolean())
      return malformed(x.place, "destination_passing_style is neither true nor false");
    x.passes_outputs = style->get<bool>();
  }
  auto options = spec.find("compile_options");
  if (options == spec.end() || options->is_null()) return {};
  if (!options->is_object()) return malformed(x.place, "compile_options is no object");
  x.cuda_cflags = {"-O3", "--use_fast_math"};
  x.ld_flags = {"-lcuda"};
  for (auto [key, into] : {std::pair{"cflags", &x.cflags}, std::pair{"cuda_cflags", &x.cuda_cflags},
                           std::pair{"ld_flags", &x.ld_flags}}) {
    if (!options->contains(key)) continue;
    auto flags = texts_at(*options, key, x.place);
    KM_TRY(flags);
    *into = std::move(*flags);
  }
  return {};
}

expected<parsed_solution> parse(const std::string& text, const std::string& place) {
  if (text.size() > most_solution) return malformed(place, "it is longer than 4 MiB");
  if (nests_deeper(text)) return malformed(place, "it nests too deep");
  auto document = json::parse(text, nullptr, false);
  if (!document.is_object()) return malformed(place, "it is no JSON object");
  parsed_solution x;
  x.place = place;
  for (auto [key, into] : {std::pair{"name", &x.name}, std::pair{"definition", &x.definition}}) {
    auto value = text_at(document, key, place);
    KM_TRY(value);
    *into = *value;
  }
  auto spec = document.find("spec");
  if (spec == document.end() || !spec->is_object())
    return malformed(place, "spec is missing, or no object");
  KM_TRY(read_spec(*spec, x));
  KM_TRY(read_sources(document, x));
  return x;
}

expected<void> check_supported(const parsed_solution& x) {
  static const std::set<std::string> known{
      "pytorch",  "python", "triton", "cute_dsl", "cutile", "tilelang", "cudnn_frontend",
      "cuda_cpp", "cuda",   "cpp",    "cutlass",  "cudnn",  "cublas"};
  for (const auto& one : x.languages)
    if (!known.contains(one)) return unsupported(x.place, "its language is " + one);
  if (!x.is_compiled()) return {};
  // flashinfer-trace takes tvm-ffi where a solution in C++ says nothing.
  bool is_of_flashinfer = x.has_language({"cuda", "cpp"});
  auto binding = !x.binding.empty() ? x.binding : is_of_flashinfer ? "tvm-ffi" : "torch";
  if (binding != "torch") return unsupported(x.place, "its binding is " + binding);
  for (const auto& one : x.sources)
    if (one.content.find("tvm/ffi/") != one.content.npos)
      return unsupported(x.place, "it includes headers of tvm-ffi");
  for (const auto& one : x.sources)
    for (const char* header : {"<cutlass/", "\"cutlass/", "<cute/", "\"cute/"})
      if (one.content.find(header) != one.content.npos)
        return unsupported(x.place, "it includes headers of CUTLASS, which builds do not have");
  return {};
}

// -- the module -----------------------------------------------------------------------------------

// JSON's escapes are Python's, too; other characters stand as they are.
std::string as_literal(const std::string& x) {
  return json(x).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string literals(const std::vector<std::string>& list) {
  std::string result;
  for (const auto& one : list) result += (result.empty() ? "" : ", ") + as_literal(one);
  return "[" + result + "]";
}

// Where an axis can be read: a dimension of an input. Empty: nowhere.
std::string place_of_axis(const definition& of, const std::string& name) {
  for (size_t i = 0; i < of.inputs.size(); ++i)
    for (size_t k = 0; k < of.inputs[i].shape.size(); ++k)
      // The last dimension of packed numbers is half as long.
      if (of.inputs[i].shape[k] == name &&
          !(of.inputs[i].type.starts_with("float4") && k + 1 == of.inputs[i].shape.size()))
        return "inputs[" + std::to_string(i) + "].shape[" + std::to_string(k) + "]";
  return {};
}

// A size of an output as Python calculates it from the inputs.
expected<std::string> size_code(const definition& of, const std::string& name,
                                const std::string& place) {
  auto found =
      std::find_if(of.axes.begin(), of.axes.end(), [&](const auto& x) { return x.name == name; });
  if (found == of.axes.end()) return name; // a number
  if (found->kind == axis_kind::constant) return std::to_string(found->value);
  if (auto at = place_of_axis(of, name); !at.empty()) return at;
  if (found->kind == axis_kind::variable)
    return unsupported(place, "it is handed its outputs, and no input has their axis " + name);
  std::string result;
  const auto& text = found->expression;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    auto word = text.substr(i, std::max<size_t>(1, end - i));
    bool is_axis = std::any_of(of.axes.begin(), of.axes.end(), [&](const auto& x) {
      return x.name == word && x.kind != axis_kind::expression;
    });
    if (is_axis) {
      auto inner = size_code(of, word, place);
      KM_TRY(inner);
      result += *inner;
    } else {
      result += word;
    }
    i += word.size();
  }
  return "int(" + result + ")";
}

expected<std::string> allocating_code(const definition& of, const std::string& place) {
  std::string lines;
  for (const auto& one : of.outputs) {
    std::string sizes;
    for (const auto& name : one.shape) {
      auto size = size_code(of, name, place);
      KM_TRY(size);
      sizes += *size + ", ";
    }
    bool is_packed = one.type.starts_with("float4");
    if (is_packed)
      return unsupported(place, "it is handed its outputs, and " + one.name + " is of " + one.type);
    lines += "        torch.zeros((" + sizes + "), dtype=torch." + one.type + ", device=device),\n";
  }
  return "    device = next(x.device for x in inputs if isinstance(x, torch.Tensor))\n"
         "    outputs = [\n" +
         lines + "    ]\n";
}

// What calls the entry and gives what the task asks for.
expected<std::string> wrapper_code(const parsed_solution& x, const definition& of,
                                   const std::string& entry) {
  bool has_packed = std::any_of(of.inputs.begin(), of.inputs.end(),
                                [](const auto& one) { return one.type.starts_with("float4"); });
  bool has_gradients = std::any_of(x.sources.begin(), x.sources.end(), [](const auto& one) {
    return one.content.find(".backward(") != one.content.npos ||
           one.content.find("autograd.grad(") != one.content.npos;
  });
  // Candidates are called without gradients.
  std::string result =
      std::string{"\n\n"} + (has_gradients ? "@torch.enable_grad()\n" : "") + "def run(*inputs):\n";
  if (x.passes_outputs) {
    auto allocating = allocating_code(of, x.place);
    KM_TRY(allocating);
    result += *allocating;
  }
  std::string passed = "*inputs";
  if (has_packed) {
    passed.clear();
    for (size_t i = 0; i < of.inputs.size(); ++i)
      passed += (i == 0 ? "inputs[" : ", inputs[") + std::to_string(i) + "]" +
                (of.inputs[i].type.starts_with("float4") ? ".view(torch.float4_e2m1fn_x2)" : "");
  }
  if (x.passes_outputs)
    return result + "    " + entry + "(" + passed + ", *outputs)\n    return " +
           (of.outputs.size() == 1 ? "outputs[0]\n" : "tuple(outputs)\n");
  std::string names;
  for (const auto& one : of.outputs) names += as_literal(one.name) + ", ";
  result += "    out = " + entry + "(" + passed + ")\n";
  result +=
      "    if isinstance(out, dict):\n        out = tuple(out[name] for name in (" + names + "))\n";
  if (of.outputs.size() == 1)
    result += "    if isinstance(out, (tuple, list)):\n        out = out[0]\n";
  return result + "    return out\n";
}

// What writes the sources and names the folder.
std::string writing_code(const parsed_solution& x) {
  std::string result =
      "import importlib\nimport os\nimport sys\nimport tempfile\n\nimport torch\n\n"
      "SOURCES = {\n";
  for (const auto& one : x.sources)
    result += "    " + as_literal(one.path) + ": " + as_literal(one.content) + ",\n";
  return result + "}\nFOLDER = tempfile.mkdtemp()\nfor path, text in SOURCES.items():\n"
                  "    place = os.path.join(FOLDER, path)\n"
                  "    os.makedirs(os.path.dirname(place), exist_ok=True)\n"
                  "    with open(place, \"w\", encoding=\"utf-8\") as file:\n"
                  "        file.write(text)\n";
}

std::string compiled_head(const parsed_solution& x) {
  std::string files;
  for (const auto& one : x.sources)
    for (const char* ending : {".cu", ".cpp", ".cc", ".cxx"})
      if (one.path.ends_with(ending))
        files += "os.path.join(FOLDER, " + as_literal(one.path) + "), ";
  return writing_code(x) +
         "\nfrom torch.utils.cpp_extension import load\n\n"
         "built = load(\n    name=\"solution_kernel\",\n    sources=[" +
         files + "],\n    extra_cflags=" + literals(x.cflags) +
         ",\n    extra_cuda_cflags=" + literals(x.cuda_cflags) +
         ",\n    extra_ldflags=" + literals(x.ld_flags) +
         ",\n    extra_include_paths=[FOLDER],\n)\nsolution_entry = built." + x.entry_name + "\n";
}

std::string several_files_head(const parsed_solution& x) {
  auto module = x.entry_file.substr(0, x.entry_file.size() - 3);
  std::replace(module.begin(), module.end(), '/', '.');
  return writing_code(x) + "sys.path.insert(0, FOLDER)\nsolution_entry = importlib.import_module(" +
         as_literal(module) + ")." + x.entry_name + "\n";
}

} // namespace

expected<std::string> definition_of_solution(const std::string& text, const std::string& place) {
  auto x = parse(text, place);
  KM_TRY(x);
  return x->definition;
}

expected<solution> read_solution(const std::string& text, const std::string& place,
                                 const definition& of) {
  auto x = parse(text, place);
  KM_TRY(x);
  if (x->definition != of.name)
    return malformed(place, "it solves " + x->definition + ", and the task is " + of.name);
  KM_TRY(check_supported(*x));
  bool is_python = x->entry_file.ends_with(".py");
  if (x->is_compiled() == is_python)
    return malformed(place,
                     "entry_point is in " + x->entry_file + ", which is of another language");
  solution result{x->name, x->definition, {}};
  const std::string entry = "solution_entry";
  if (!is_python) {
    result.module = compiled_head(*x);
  } else if (x->sources.size() > 1) {
    result.module = several_files_head(*x);
  } else {
    // One file stays what it is, so that what is said of its lines is true of the solution's.
    const auto& own = x->sources.front().content;
    result.module = own + (own.back() == '\n' ? "" : "\n") + "\n\nimport torch  # noqa: E402\n\n" +
                    "solution_entry = " + x->entry_name + "\n";
  }
  auto wrapper = wrapper_code(*x, of, entry);
  KM_TRY(wrapper);
  result.module += *wrapper;
  return result;
}

expected<std::string> module_for_task(const std::string& folder, const std::string& text,
                                      const std::string& place) {
  if (!is_in_folder(folder, "definition.json"))
    return configuration_error("bad_solution",
                               "failed to take " + place +
                                   ": a solution in JSON is for a task of SOL-ExecBench or "
                                   "flashinfer-trace, and " +
                                   folder + " has no definition.json",
                               "import the suite again with `kernelmill task import sol`");
  auto file = read_in_folder(folder, "definition.json");
  KM_TRY(file);
  auto what = read_definition(*file, folder + "/definition.json", "def run(): pass");
  KM_TRY(what);
  auto result = read_solution(text, place, *what);
  KM_TRY(result);
  return std::move(result->module);
}

} // namespace kernelmill::sol
