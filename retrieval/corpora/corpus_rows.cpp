#include "retrieval/corpora/corpus_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

using corpus_json = nlohmann::json;
using read_row = tl::expected<corpus_kernel, std::string>;

constexpr size_t most_column_bytes = 1 << 20; // prompts show 10,000 characters of it
constexpr size_t most_line_bytes = 512;

class row_columns {
public:
  explicit row_columns(const corpus_json& row) : row_(row) {}

  /// Of a list its texts, with commas. Empty: there is none.
  std::string text(const char* column) const {
    const auto& x = at(column);
    if (x.is_string()) return x.get<std::string>();
    if (x.is_number_integer()) return x.dump();
    std::string result;
    if (x.is_array())
      for (const auto& one : x)
        if (one.is_string()) result += (result.empty() ? "" : ", ") + one.get<std::string>();
    return result;
  }

  /// The same as one line, of which prompts, records and terminals show as much.
  std::string name(const char* column) const {
    auto result = text(column);
    if (result.size() > most_line_bytes) {
      auto end = most_line_bytes; // no half of a character
      while (end > 0 && (static_cast<unsigned char>(result[end]) & 0xc0) == 0x80) --end;
      result.resize(end);
    }
    for (char& c : result)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    return result;
  }

  std::optional<double> number(const char* column) const {
    const auto& x = at(column);
    double result = std::nan("");
    if (x.is_number()) result = x.get<double>();
    if (x.is_string()) {
      auto text = trimmed(x.get<std::string>());
      char* end = nullptr;
      result = std::strtod(text.c_str(), &end);
      if (text.empty() || *end != 0) return std::nullopt;
    }
    return std::isfinite(result) ? std::optional{result} : std::nullopt;
  }

  uint32_t count(const char* column) const {
    auto x = number(column).value_or(0);
    return x >= 1 && x < 1e6 ? static_cast<uint32_t>(x) : 0;
  }

  std::optional<bool> truth(const char* column) const {
    const auto& x = at(column);
    if (x.is_boolean()) return x.get<bool>();
    if (x.is_string()) {
      auto word = lowered(trimmed(x.get<std::string>()));
      if (word == "true" || word == "1") return true;
      if (word == "false" || word == "0") return false;
      return std::nullopt;
    }
    if (x.is_number()) return x.get<double>() != 0;
    return std::nullopt;
  }

  bool has(const char* column) const { return !at(column).is_null(); }

  /// What is wrong with a column that must hold code; empty: nothing.
  std::string fault_of(const char* column) const {
    if (!row_.contains(column)) return fmt::format("the column \"{}\" is missing", column);
    const auto& x = row_[column];
    if (!x.is_string() || trimmed(x.get_ref<const std::string&>()).empty())
      return fmt::format("the column \"{}\" holds no text", column);
    if (x.get_ref<const std::string&>().find('\0') != std::string::npos)
      return fmt::format("the column \"{}\" holds a zero byte", column);
    if (x.get_ref<const std::string&>().size() > most_column_bytes)
      return fmt::format("the column \"{}\" holds more than {} bytes", column, most_column_bytes);
    return {};
  }

private:
  const corpus_json& at(const char* column) const {
    static const corpus_json none;
    auto found = row_.find(column);
    return found == row_.end() ? none : *found;
  }

  const corpus_json& row_;
};

/// "KernelBook, owner/name, MIT"
std::string provenance(std::string result, const std::string& where, const std::string& licence) {
  for (const auto* x : {&where, &licence})
    if (!x->empty()) result += ", " + *x;
  return result;
}

read_row kernelbook_row(const row_columns& row, const file_row& at) {
  for (const auto* column : {"python_code", "triton_code"})
    if (auto fault = row.fault_of(column); !fault.empty()) return tl::unexpected{fault};
  corpus_kernel x;
  auto id = row.name("uuid");
  x.kernel.id = "kernelbook/" + (id.empty() ? std::to_string(at.number) : id);
  x.kernel.task = row.name("module_name");
  if (x.kernel.task.empty()) x.kernel.task = row.name("entry_point");
  x.kernel.backend = "cuda";
  x.kernel.source = row.text("triton_code");
  x.kernel.language = "python";
  x.kernel.reference = row.text("python_code");
  x.kernel.origin = provenance("KernelBook", row.name("repo_name"), row.name("licenses"));
  x.kernel.split = "train"; // none of its modules is a task
  x.kernel.rights_source = "kernelbook";
  return x;
}

/// The problem of KernelBench that a row solves, as tasks are named: "kernelbench/level1/19_ReLU".
std::string problem_of(uint32_t level, uint32_t number, std::string name) {
  if (level == 0 || name.empty()) return name;
  auto digits = name.find_first_not_of("0123456789");
  bool numbered = digits != name.npos && digits > 0 && name[digits] == '_';
  if (!numbered && number > 0) name = fmt::format("{}_{}", number, name);
  return fmt::format("kernelbench/level{}/{}", level, name);
}

read_row sakana_row(const row_columns& row, const file_row& at) {
  for (const auto* column : {"PyTorch_Code_Module", "CUDA_Code"})
    if (auto fault = row.fault_of(column); !fault.empty()) return tl::unexpected{fault};
  corpus_kernel x;
  x.correct = row.truth("Correct");
  if (!x.correct)
    return tl::unexpected{std::string{"the column \"Correct\" is neither true nor "
                                      "false"}};
  auto level = row.count("Level_ID"), number = row.count("Task_ID");
  x.kernel.id = level == 0 ? fmt::format("sakana-archive/{}", at.number)
                           : fmt::format("sakana-archive/{}-{}-{}", level, number, at.number);
  x.kernel.task = problem_of(level, number, row.name("Op_Name"));
  x.kernel.backend = "cuda";
  x.kernel.source = row.text("CUDA_Code");
  x.kernel.language = "cuda";
  x.kernel.reference = row.text("PyTorch_Code_Module");
  x.kernel.speedup = std::max(0.0, row.number("CUDA_Speedup_Native").value_or(0));
  x.kernel.origin = provenance("AI CUDA Engineer Archive", row.name("Kernel_Name"), "CC-BY-4.0");
  if (level == 0) x.kernel.split = "train"; // it names no task
  x.kernel.rights_source = "sakana-archive";
  return x;
}

std::string backend_of(std::string_view language) {
  if (language == "cpp") return "cpu";
  return language == "hip" ? "hip" : "cuda";
}

read_row own_row(const row_columns& row, const file_row& at) {
  if (auto fault = row.fault_of("kernel"); !fault.empty()) return tl::unexpected{fault};
  corpus_kernel x;
  auto& kernel = x.kernel;
  kernel.rights_source = row.name("source");
  auto id = row.name("id");
  kernel.id = fmt::format("{}/{}", kernel.rights_source.empty() ? "ndjson" : kernel.rights_source,
                          id.empty() ? std::to_string(at.number) : id);
  kernel.task = row.name("task");
  kernel.operator_family = row.name("operator_family");
  kernel.source = row.text("kernel");
  kernel.language = row.name("language");
  if (kernel.language.empty()) kernel.language = "python";
  static const std::string known[] = {"cpp", "cuda", "hip", "triton", "python"};
  if (std::find(std::begin(known), std::end(known), kernel.language) == std::end(known))
    return tl::unexpected{fmt::format("the column \"language\" is \"{}\", and none of {}",
                                      kernel.language, joined(known))};
  if (kernel.language == "triton") kernel.language = "python"; // as a fence names it
  kernel.backend = row.name("backend");
  if (kernel.backend.empty()) kernel.backend = backend_of(kernel.language);
  static const std::string backends[] = {"cpu", "cuda", "hip"};
  if (std::find(std::begin(backends), std::end(backends), kernel.backend) == std::end(backends))
    return tl::unexpected{fmt::format("the column \"backend\" is \"{}\", and none of {}",
                                      kernel.backend, joined(backends))};
  kernel.reference = row.text("reference");
  if (!trimmed(kernel.reference).empty())
    if (auto fault = row.fault_of("reference"); !fault.empty()) return tl::unexpected{fault};
  auto speedup = row.number("speedup");
  if (row.has("speedup") && (!speedup || *speedup < 0))
    return tl::unexpected{std::string{"the column \"speedup\" is no number from 0 on"}};
  kernel.speedup = speedup.value_or(0);
  kernel.device = row.name("device");
  kernel.date = row.name("date");
  kernel.origin = row.name("origin");
  kernel.origin = provenance(kernel.origin.empty() ? kernel.rights_source : kernel.origin, {},
                             row.name("licence"));
  if (kernel.task.empty()) kernel.split = "train"; // it solves no task
  x.correct = row.truth("correct");
  return x;
}

} // namespace

read_row kernel_of_row(corpus_shape shape, const file_row& row) {
  if (nests_deeper(row.text)) return tl::unexpected{std::string{"it nests too deep"}};
  auto json = corpus_json::parse(row.text, nullptr, false);
  if (!json.is_object()) return tl::unexpected{std::string{"it is no JSON object"}};
  row_columns columns{json};
  auto result = shape == corpus_shape::kernelbook ? kernelbook_row(columns, row)
                : shape == corpus_shape::sakana   ? sakana_row(columns, row)
                                                  : own_row(columns, row);
  // A prompt shows where a kernel is from: it must not pass for a right one.
  if (result && result->correct == false) result->kernel.origin += ", found wrong there";
  return result;
}

uint32_t kernelbench_level(const std::string& task) {
  constexpr std::string_view start = "kernelbench/level";
  if (!task.starts_with(start)) return 0;
  return static_cast<uint32_t>(std::strtoul(task.c_str() + start.size(), nullptr, 10));
}

} // namespace kernelmill
