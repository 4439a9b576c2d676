#include "gpu/toolchain/torch_request.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>

#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

using json = nlohmann::json;

constexpr size_t most_report = size_t{64} << 20;
constexpr size_t most_words = 64;
constexpr size_t most_word = 4096;
constexpr size_t most_functions = 256;
constexpr size_t most_sources = 32;
constexpr size_t most_name = 100;

// Thrown and caught in this file alone.
struct refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_identifier(std::string_view x) {
  return !x.empty() && x.size() <= most_name && !(x[0] >= '0' && x[0] <= '9') &&
         std::all_of(x.begin(), x.end(), is_word);
}

// "f" and "space::f": what can stand as an expression that names a function.
bool is_function(std::string_view x) {
  while (true) {
    auto at = x.find("::");
    if (!is_identifier(x.substr(0, at))) return false;
    if (at == x.npos) return true;
    x.remove_prefix(at + 2);
  }
}

bool is_file_name(std::string_view x) {
  return !x.empty() && x.size() <= most_name && x[0] != '.' && x[0] != '-' &&
         std::all_of(x.begin(), x.end(),
                     [](char c) { return is_word(c) || c == '.' || c == '-' || c == '+'; });
}

std::string shown(std::string_view x) {
  std::string result{x.substr(0, 60)};
  std::replace_if(
      result.begin(), result.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; }, '?');
  return '"' + result + '"';
}

std::string text_of(const json& x, size_t most) {
  auto& text = x.get_ref<const std::string&>();
  if (text.size() > most) throw refused{"a text has more than " + std::to_string(most) + " bytes"};
  if (text.find('\0') != text.npos) throw refused{"a text holds a zero byte"};
  return text;
}

std::vector<std::string> words_of(const json& x, const char* name) {
  std::vector<std::string> result;
  for (auto& one : x.at(name)) result.push_back(text_of(one, most_word));
  if (result.size() > most_words) throw refused{std::string{name} + " has more than 64 words"};
  return result;
}

std::vector<extension_source> sources_of(const json& x) {
  std::vector<extension_source> result;
  std::set<std::string> names;
  size_t total = 0;
  for (auto& one : x) {
    extension_source source{text_of(one.at("name"), most_word),
                            text_of(one.at("text"), most_extension_source)};
    bool known = source.is_header();
    for (auto* suffix : {".cpp", ".cc", ".cxx", ".cu"})
      known = known || source.name.ends_with(suffix);
    if (!is_file_name(source.name) || !known)
      throw refused{"the source " + shown(source.name) + " is no .cpp, .cc, .cxx or .cu file"};
    if (!names.insert(source.name).second)
      throw refused{"two sources have the name " + shown(source.name)};
    total += source.text.size();
    if (total > most_extension_source) throw refused{"its sources have more than 1 MiB"};
    result.push_back(std::move(source));
  }
  if (std::all_of(result.begin(), result.end(), [](auto& y) { return y.is_header(); }))
    throw refused{"it has no sources"};
  if (result.size() > most_sources) throw refused{"it has more than 32 sources"};
  return result;
}

bool is_key(std::string_view x) {
  return x.size() == 64 && std::all_of(x.begin(), x.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

extension_request request_of(const json& entry) {
  extension_request result;
  result.key = text_of(entry.at("key"), most_word);
  if (!is_key(result.key)) throw refused{"a key is not 64 hexadecimal digits"};
  auto& x = entry.at("request");
  result.name = text_of(x.at("name"), most_word);
  if (!is_identifier(result.name))
    throw refused{"the name " + shown(result.name) + " is no identifier"};
  result.sources = sources_of(x.at("sources"));
  result.from_text = x.at("inline").get<bool>();
  result.headers = x.at("headers").get<bool>();
  result.error_handling = x.at("error_handling").get<bool>();
  result.is_module = x.at("is_python_module").get<bool>();
  result.with_cuda = x.at("with_cuda").is_boolean() && x.at("with_cuda").get<bool>();
  if (auto& functions = x.at("functions"); functions.is_object()) {
    result.functions.emplace();
    for (auto& [name, text] : functions.items()) {
      if (!is_function(name)) throw refused{"the function " + shown(name) + " is no identifier"};
      result.functions->emplace_back(name, text_of(text, most_word));
    }
    if (result.functions->size() > most_functions) throw refused{"it has more than 256 functions"};
  }
  result.flags = words_of(x, "cflags");
  result.cuda_flags = words_of(x, "cuda_cflags");
  result.link_flags = words_of(x, "ldflags");
  result.include_paths = words_of(x, "include_paths");
  return result;
}

recording recording_of(const json& x) {
  recording result;
  result.stage = text_of(x.at("stage"), most_word);
  result.has_model_new = x.at("has_model_new").get<bool>();
  if (auto& problem = x.at("error"); problem.is_object()) {
    auto line = problem.at("line").get<int64_t>();
    result.problem = {text_of(problem.at("type"), most_word),
                      text_of(problem.at("message"), most_word * 8),
                      line > 0 && line < 10'000'000 ? static_cast<unsigned>(line) : 0,
                      text_of(problem.at("traceback"), most_word * 32)};
  }
  for (auto& [path, data] : x.at("triton_files").items())
    result.triton_files.emplace(path, data.get<std::string>());
  result.triton_problem = text_of(x.at("triton_problem"), most_word * 8);
  auto& requests = x.at("requests");
  if (requests.size() > most_extensions) throw refused{"it asks for more than 16 extensions"};
  std::set<std::string> keys;
  for (auto& one : requests) {
    auto request = request_of(one);
    if (keys.insert(request.key).second) result.requests.push_back(std::move(request));
  }
  return result;
}

// The last line that ends; a process that was killed may have left half of another.
std::string_view last_line(std::string_view report) {
  auto end = report.rfind('\n');
  if (end == report.npos) return {};
  auto begin = end == 0 ? report.npos : report.rfind('\n', end - 1);
  begin = begin == report.npos ? 0 : begin + 1;
  return report.substr(begin, end - begin);
}

} // namespace

bool extension_source::is_header() const {
  constexpr const char* suffixes[] = {".h", ".hpp", ".hh", ".cuh", ".inl"};
  return std::any_of(std::begin(suffixes), std::end(suffixes),
                     [this](auto* x) { return name.ends_with(x); });
}

bool extension_request::has_cuda() const {
  return std::any_of(sources.begin(), sources.end(), [](auto& x) { return x.is_cuda(); });
}

expected<recording> parse_recording(const std::string& report) {
  auto fail = [](const std::string& why) {
    return candidate_error("compile_error", "failed to build the candidate's extension: " + why,
                           "see docs/reference/torch-contract.md");
  };
  if (report.size() > most_report) return fail("the report of the module's import is too long");
  auto line = last_line(report);
  if (line.empty()) return recording{};
  if (nests_deeper(line)) return fail("the report of the module's import nests too deep");
  auto document = json::parse(line, nullptr, false);
  try {
    return recording_of(document);
  } catch (const refused& problem) {
    return fail(problem.what());
  } catch (const json::exception&) {
    return fail("the report of the module's import is damaged");
  }
}

} // namespace kernelmill
