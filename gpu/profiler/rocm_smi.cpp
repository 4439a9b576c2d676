// Names of fields are those of ROCm 4.3 to 6.4; versions differ in some of them.

#include "gpu/profiler/rocm_smi.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "gpu/profiler/csv.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_readings = 64;
constexpr size_t longest_label = 120;

// "45.0", "99%", "(300Mhz)". Nothing of "N/A".
std::optional<double> reading_in(std::string_view x) {
  x = trimmed(x, " \t(");
  double value = 0;
  auto [end, problem] = std::from_chars(x.data(), x.data() + x.size(), value);
  if (problem != std::errc{} || !std::isfinite(value) || std::abs(value) > 1e15)
    return std::nullopt;
  return value;
}

gpu_reading* reading_of(std::vector<gpu_reading>& all, std::string_view card) {
  card = card.substr(0, longest_label);
  for (auto& x : all)
    if (x.card == card) return &x;
  if (all.size() == most_readings) return nullptr;
  all.push_back({});
  all.back().card = card;
  return &all.back();
}

// A key that comes earlier in a row of the table wins, wherever it stands in the file.
void take_field(gpu_reading& to, std::string_view name, std::string_view value) {
  auto key = lowered(trimmed(name, " \t\r\n:"));
  if (key == "card series" || (key == "device name" && to.name.empty()))
    to.name = std::string{trimmed(value).substr(0, longest_label)};
  if (key == "gfx version") to.architecture = std::string{trimmed(value).substr(0, 40)};
  for (const auto& row : reading_table()) {
    auto known = std::find(row.keys.begin(), row.keys.end(), key);
    if (known == row.keys.end()) continue;
    if (known != row.keys.begin() && to.*row.value) continue;
    if (auto x = reading_in(value)) to.*row.value = x;
  }
}

bool is_card(std::string_view x) {
  return lowered(x.substr(0, 4)) == "card" && x.size() > 4 &&
         x.find_first_not_of("0123456789", 4) == x.npos;
}

void take_json(std::string_view text, std::vector<gpu_reading>& to) {
  if (nests_deeper(text)) return;
  auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object()) return;
  for (const auto& [card, fields] : document.items()) {
    if (!is_card(card) || !fields.is_object()) continue;
    auto* reading = reading_of(to, card);
    if (reading == nullptr) return;
    for (const auto& [name, value] : fields.items())
      if (value.is_string())
        take_field(*reading, name, value.get_ref<const std::string&>());
      else if (value.is_number())
        take_field(*reading, name, value.dump());
  }
}

bool is_smi_header(std::string_view line) {
  return lowered(line.substr(0, 7)) == "device,";
}

// Several tables may follow each other, each with its header.
void take_csv(std::string_view text, std::vector<gpu_reading>& to) {
  csv_row header;
  while (!text.empty()) {
    auto line = trimmed(next_line(text));
    if (is_smi_header(line)) {
      header = csv_fields(line);
      continue;
    }
    auto row = csv_fields(line);
    if (!is_card(row[0]) || row.size() > header.size()) continue;
    auto* reading = reading_of(to, row[0]);
    if (reading == nullptr) return;
    for (size_t i = 1; i < row.size(); ++i) take_field(*reading, header[i], row[i]);
  }
}

// Where the JSON begins, behind lines of warnings.
size_t json_in(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    auto rest = text.substr(at);
    if (rest.starts_with('{')) return at;
    auto end = rest.find('\n');
    if (end == rest.npos) break;
    at += end + 1;
  }
  return text.npos;
}

} // namespace

const std::vector<reading_row>& reading_table() {
  using r = gpu_reading;
  static const std::vector<reading_row> rows = {
      {&r::edge_celsius, "edge_celsius", {"temperature (sensor edge) (c)"}},
      {&r::junction_celsius, "junction_celsius", {"temperature (sensor junction) (c)"}},
      {&r::memory_celsius, "memory_celsius", {"temperature (sensor memory) (c)"}},
      {&r::core_mhz, "core_mhz", {"sclk clock speed"}},
      {&r::memory_mhz, "memory_mhz", {"mclk clock speed"}},
      {&r::use, "use", {"gpu use (%)"}},
      {&r::memory_activity,
       "memory_activity",
       {"gpu memory read/write activity (%)", "gpu memory use (%)"}},
      {&r::power_watts,
       "power_watts",
       {"current socket graphics package power (w)", "average graphics package power (w)"}},
      {&r::power_limit_watts, "power_limit_watts", {"max graphics package power (w)"}},
      {&r::memory_bytes, "memory_bytes", {"vram total memory (b)"}},
      {&r::memory_used_bytes, "memory_used_bytes", {"vram total used memory (b)"}},
  };
  return rows;
}

bool is_rocm_smi(std::string_view text) {
  if (auto at = json_in(text); at != text.npos)
    return text.substr(at, 200).find("\"card") != text.npos;
  while (!text.empty())
    if (is_smi_header(trimmed(next_line(text)))) return true;
  return false;
}

trace_report read_rocm_smi(std::string_view text) {
  trace_report result;
  result.tool = trace_tool::rocm_smi;
  if (auto at = json_in(text); at != text.npos)
    take_json(text.substr(at), result.readings);
  else
    take_csv(text, result.readings);
  if (result.readings.empty()) {
    result.problem = trace_problem::no_gpus;
    result.words = "there is no card in it, or it is cut off";
  }
  return result;
}

} // namespace kernelmill
