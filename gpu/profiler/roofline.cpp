#include "gpu/profiler/roofline.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace kernelmill {

namespace {

using number = std::optional<double>;
using m = metric;

constexpr double no_matter = 1; // % of a pipe that changes no count

number ratio(number a, number b) {
  if (!a || !b || !(*b > 0) || !std::isfinite(*a / *b)) return std::nullopt;
  return *a / *b;
}

struct field {
  std::string_view name;
  std::string_view unit;
  number& (*of)(roofline_position& x);
};

constexpr std::array<field, 5> fields{
    {{"arithmetic_intensity", "flop/B",
      [](roofline_position& x) -> number& { return x.intensity; }},
     {"achieved_flops", "flop/s", [](roofline_position& x) -> number& { return x.flops; }},
     {"achieved_bandwidth", "B/s", [](roofline_position& x) -> number& { return x.bandwidth; }},
     {"peak_flops", "flop/s", [](roofline_position& x) -> number& { return x.roof.flops; }},
     {"peak_bandwidth", "B/s", [](roofline_position& x) -> number& { return x.roof.bandwidth; }}}};

} // namespace

std::optional<double> device_roof::ridge() const {
  return ratio(flops, bandwidth);
}

std::optional<double> roofline_position::attainable() const {
  if (!intensity || !roof.flops || !roof.bandwidth) return std::nullopt;
  return std::min(*roof.flops, *intensity * *roof.bandwidth);
}

std::optional<bool> roofline_position::is_below_slope() const {
  auto ridge = roof.ridge();
  if (!intensity || !ridge) return std::nullopt;
  return *intensity < *ridge;
}

roofline_position position_of(const roofline_work& work, const device_roof& roof) {
  return {ratio(work.flops, work.bytes), ratio(work.flops, work.seconds),
          ratio(work.bytes, work.seconds), roof};
}

roofline_work counted_work(const metric_values& x) {
  roofline_work result;
  result.bytes = x[m::dram_bytes];
  if (auto time = x[m::time]) result.seconds = *time * 1e-6;
  auto adds = x[m::fp32_adds], muls = x[m::fp32_muls], fmas = x[m::fp32_fmas];
  auto tensor = x[m::tensor_pipe], fp64 = x[m::fp64_pipe];
  bool all_counted = tensor && *tensor < no_matter && fp64 && *fp64 < no_matter;
  if (adds && muls && fmas && all_counted) result.flops = *adds + *muls + 2 * *fmas;
  return result;
}

std::vector<roofline_quantity> quantities_of(const roofline_position& x) {
  std::vector<roofline_quantity> result;
  auto copy = x;
  for (const auto& one : fields)
    if (auto value = one.of(copy)) result.push_back({one.name, *value, one.unit});
  if (auto ridge = x.roof.ridge()) result.push_back({"ridge_point", *ridge, "flop/B"});
  return result;
}

bool set_quantity(roofline_position& x, std::string_view name, double value) {
  if (name == "ridge_point") return true; // follows from the peaks
  for (const auto& one : fields)
    if (one.name == name) {
      one.of(x) = value;
      return true;
    }
  return false;
}

std::string with_unit(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 6> steps{"", "k", "M", "G", "T", "P"};
  size_t step = 0;
  while (value >= 1000 && step + 1 < steps.size()) {
    value /= 1000;
    ++step;
  }
  return fmt::format("{:.3g} {}{}", value, steps[step], unit);
}

std::string position_text(const roofline_position& x) {
  if (x.empty()) return {};
  std::string result;
  auto add = [&](const std::string& part) { result += (result.empty() ? "" : ", ") + part; };
  auto of_peak = [](number peak, std::string_view unit) {
    return peak ? " of " + with_unit(*peak, unit) : std::string{};
  };
  auto ridge = x.roof.ridge();
  if (x.intensity)
    add(fmt::format("{:.3g} flop/B", *x.intensity) +
        (ridge ? fmt::format(" (ridge {:.3g})", *ridge) : ""));
  if (x.flops) add(with_unit(*x.flops, "flop/s") + of_peak(x.roof.flops, "flop/s"));
  if (x.bandwidth) add(with_unit(*x.bandwidth, "B/s") + of_peak(x.roof.bandwidth, "B/s"));
  if (auto share = ratio(x.flops, x.attainable()))
    add(fmt::format("{:.0f} % of the roof", 100 * *share));
  if (auto below = x.is_below_slope())
    result += *below ? "; memory is the lower part of the roof here"
                     : "; arithmetic is the lower part of the roof here";
  return result;
}

} // namespace kernelmill
