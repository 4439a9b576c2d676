#include "launch/judging/benching/bench_text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::benching {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t usual_width = 100;        // of what is no terminal
constexpr size_t narrowest_bar = 10;       // columns
constexpr double most_on_linear_axis = 50; // largest time by the smallest

struct unit {
  const char* name;
  double of_ms;
};

unit unit_of(double ms) {
  if (ms < 1) return {"us", 1e3};
  return ms < 1e3 ? unit{"ms", 1} : unit{"s", 1e-3};
}

// "35.1 [34.2, 36.0]" of numbers that were multiplied by `factor`.
std::string interval_words(const with_interval& x, double factor = 1) {
  auto result = fmt::format("{:.4g}", x.estimate * factor);
  if (x.low && x.high)
    result += fmt::format(" [{:.4g}, {:.4g}]", *x.low * factor, *x.high * factor);
  return result;
}

std::string time_words(const with_interval& ms) {
  auto by = unit_of(ms.estimate);
  return interval_words(ms, by.of_ms) + " " + by.name;
}

double gigabytes(const bench_row& x, double ms) {
  return ms > 0 ? x.bytes / ms * 1e-6 : 0;
}

std::string shape_words(const bench_row& x) {
  return x.name.empty() ? x.shape : x.shape + " (" + x.name + ")";
}

// "not_timed: a speedup from ...": what the category says is not said again.
std::string result_words(const bench_row& x) {
  if (x.reason.empty()) return x.category;
  auto why = cli::clean(x.reason);
  constexpr std::string_view again = "not timed: ";
  if (x.category == "not_timed" && why.starts_with(again)) why.erase(0, again.size());
  return x.category + ": " + why;
}

struct axis {
  double low = 0, high = 0; // ms
  bool logarithmic = false;

  double place(double ms) const { // 0 to 1
    double at = logarithmic ? std::log(std::max(ms, low) / low) / std::log(high / low) : ms / high;
    return std::clamp(at, 0.0, 1.0);
  }
};

double end_of(const with_interval& x) {
  return std::max(x.estimate, x.high.value_or(0));
}

// Of few evaluations an interval may end a hundred times beyond what it is of: the axis does not.
double end_on_axis(const with_interval& x) {
  constexpr double farthest = 4; // times the estimate
  return std::min(end_of(x), farthest * x.estimate);
}

axis axis_of(const std::vector<bench_row>& rows) {
  axis result;
  double least = 0;
  for (const auto& x : rows) {
    if (!x.timed()) continue;
    for (const auto& side : {x.candidate_ms(), x.reference_ms()}) {
      result.high = std::max(result.high, end_on_axis(side));
      if (least == 0 || side.estimate < least) least = side.estimate;
    }
  }
  if (!(least > 0)) return result;
  result.logarithmic = result.high / least > most_on_linear_axis;
  // A power of ten below all, so that the shortest bar has a length.
  if (result.logarithmic) result.low = std::pow(10, std::floor(std::log10(least * 0.99)));
  return result;
}

std::string bar(const axis& on, const with_interval& x, size_t width) {
  auto columns = [&](double ms) {
    return static_cast<size_t>(std::lround(on.place(ms) * static_cast<double>(width)));
  };
  auto full = std::max<size_t>(1, columns(x.low.value_or(x.estimate)));
  auto end = std::max(full, columns(end_of(x)));
  std::string result;
  for (size_t i = 0; i < full; ++i) result += "█";
  for (size_t i = full; i < end; ++i) result += "▒";
  return result;
}

// For programs: plain numbers, a column each.
std::string plain_table(const std::vector<bench_row>& rows) {
  std::vector<std::vector<std::string>> cells;
  for (const auto& x : rows) {
    std::vector<std::string> row{x.shape, x.name};
    auto add = [&](bool known, double value) {
      row.push_back(known ? fmt::format("{:.6g}", value) : "-");
    };
    bool timed = x.timed();
    for (auto side : {&bench_row::candidate_ms, &bench_row::reference_ms, &bench_row::speedup}) {
      auto value = timed ? (x.*side)() : with_interval{};
      add(timed, value.estimate);
      add(value.low.has_value(), value.low.value_or(0));
      add(value.high.has_value(), value.high.value_or(0));
    }
    auto rate = timed ? gigabytes(x, x.candidate_ms().estimate) : 0;
    add(rate > 0, rate);
    row.insert(row.end(), {fmt::to_string(x.samples.size()), fmt::to_string(x.calls()), x.category,
                           cli::clean(x.reason)});
    cells.push_back(std::move(row));
  }
  return cli::format_table({"SHAPE", "NAME", "CANDIDATE [ms]", "CANDIDATE LOW [ms]",
                            "CANDIDATE HIGH [ms]", "BASELINE [ms]", "BASELINE LOW [ms]",
                            "BASELINE HIGH [ms]", "SPEEDUP", "SPEEDUP LOW", "SPEEDUP HIGH",
                            "RATE [GB/s]", "EVALUATIONS", "CALLS", "CATEGORY", "REASON"},
                           cells);
}

} // namespace

std::string table_text(const std::vector<bench_row>& rows, size_t width) {
  if (cli::plain_cells()) return plain_table(rows);
  std::vector<std::vector<std::string>> cells;
  for (const auto& x : rows) {
    if (!x.timed()) {
      cells.push_back({shape_words(x), "-", "-", "-", "-", "-", result_words(x)});
      continue;
    }
    auto rate = gigabytes(x, x.candidate_ms().estimate);
    cells.push_back({shape_words(x), time_words(x.candidate_ms()), time_words(x.reference_ms()),
                     interval_words(x.speedup()), rate > 0 ? fmt::format("{:.3g}", rate) : "-",
                     fmt::format("{} x {}", x.samples.size(), x.calls() / x.samples.size()),
                     x.category});
  }
  return cli::format_table(
      {"SHAPE", "CANDIDATE>", "BASELINE>", "SPEEDUP>", "GB/s>", "SAMPLE>", "RESULT"}, cells, width);
}

std::string few_text(const std::vector<bench_row>& rows, size_t evaluations) {
  constexpr size_t fewest = 3; // two have one difference, whose 95 % interval says next to nothing
  bool timed = std::any_of(rows.begin(), rows.end(), [](const auto& x) { return x.timed(); });
  if (!timed || evaluations >= fewest) return {};
  return fmt::format("{} too few for {}: --evaluations 5 or more {}\n",
                     evaluations == 1 ? "one evaluation is" : "two evaluations are",
                     evaluations == 1 ? "an interval of the times" : "a useful interval",
                     evaluations == 1 ? "gives one" : "narrows it");
}

std::string bars_text(const std::vector<bench_row>& rows, size_t width) {
  auto on = axis_of(rows);
  if (!(on.high > 0)) return {};
  if (width == 0) width = usual_width;
  constexpr size_t names = 12, value = 34; // columns beside a bar
  auto room = std::max(narrowest_bar, width - std::min(width, names + value));
  auto by = unit_of(on.high);
  auto result = fmt::format("time of a call from {:.3g} to {:.3g} {}{}; shaded: 95 % interval\n",
                            on.low * by.of_ms, on.high * by.of_ms, by.name,
                            on.logarithmic ? ", logarithmic" : "");
  for (const auto& x : rows) {
    if (!x.timed()) continue;
    result += shape_words(x) + "\n";
    for (const auto& [name, side] :
         {std::pair{"candidate", x.candidate_ms()}, {"baseline", x.reference_ms()}})
      result += fmt::format("  {:<9} {} {}\n", name, bar(on, side, room), time_words(side));
  }
  return result;
}

json row_json(const bench_row& x) {
  auto number = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? json(*value) : json(nullptr);
  };
  auto interval = [&](const with_interval& y) -> json {
    return {{"estimate", y.estimate}, {"low", number(y.low)}, {"high", number(y.high)}};
  };
  json result = {{"name", x.name},
                 {"shape", x.shape},
                 {"timed", x.timed()},
                 {"outcome", x.outcome.empty() ? json(nullptr) : json(x.outcome)},
                 {"category", x.category},
                 {"reason", cli::clean(x.reason)},
                 {"evaluations", x.samples.size()},
                 {"calls", x.calls()}};
  bool timed = x.timed();
  auto some = [&](double value) { return value > 0 ? json(value) : json(nullptr); };
  result["candidate_ms"] = timed ? interval(x.candidate_ms()) : json(nullptr);
  result["reference_ms"] = timed ? interval(x.reference_ms()) : json(nullptr);
  result["speedup"] = timed ? interval(x.speedup()) : json(nullptr);
  result["roofline_ms"] = some(x.roofline_ms);
  result["bytes"] = some(x.bytes);
  result["flops"] = some(x.flops);
  result["candidate_gb_per_s"] =
      timed ? some(gigabytes(x, x.candidate_ms().estimate)) : json(nullptr);
  result["reference_gb_per_s"] =
      timed ? some(gigabytes(x, x.reference_ms().estimate)) : json(nullptr);
  auto samples = json::array();
  for (const auto& one : x.samples)
    samples.push_back({{"candidate_ms", one.candidate_ms},
                       {"reference_ms", one.reference_ms},
                       {"speedup", interval(one.speedup)},
                       {"calls", one.calls}});
  result["samples"] = std::move(samples);
  return result;
}

} // namespace kernelmill::benching
