#include "gpu/referee/row_arithmetic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill {

namespace {

constexpr double row_seconds = 1.5e-3;
constexpr double longest_row_seconds = 40e-3;
constexpr unsigned fewest_sets = 4;
constexpr double intercept_factor = 1.1; // of the quiet one, that is free
constexpr double intercept_floor = 5e-6; // seconds
constexpr double least_share = 0.2;      // of a row that is always paid
constexpr double least_row = 1e-9;       // seconds, also where more than a row is withheld
constexpr double contents_share = 0.005; // two stretches of memory are filled that much alike
constexpr double contents_floor = 3e-6;  // seconds
constexpr size_t fewest_for_a_median = 4;
constexpr double row_wait_share = 0.03;  // of a row
constexpr double row_wait_floor = 20e-6; // seconds
constexpr double longest_usual_wait = 150e-6;
constexpr double cost_slack =
    0.4e-6; // seconds of a call, by which that is unlike from time to time
// Medians of a dozen rows of honest kernels on an H200 differ by less.
constexpr double beside_share = 0.01;   // of a call, and
constexpr double beside_floor = 0.8e-6; // seconds
constexpr size_t least_of_a_length = 3; // rows
constexpr double alike_share = 0.02;    // of the longest row, and
constexpr double alike_floor = 20e-6;   // seconds
constexpr double launch_spread = 30e-6; // seconds, of launches on H200s

double quantile(std::vector<double> x, double share) {
  if (x.empty()) return 0;
  std::sort(x.begin(), x.end());
  return x[static_cast<size_t>(share * static_cast<double>(x.size() - 1) + 0.5)];
}

// Rows by what they take besides calls of so many seconds, the least first: short ones, and long
// ones.
using by_length = std::array<std::vector<std::pair<double, row_times>>, 2>;

by_length sorted_rows(const std::vector<row_times>& rows, double call) {
  unsigned longest = 0;
  for (const auto& x : rows) longest = std::max(longest, x.calls);
  by_length result;
  for (const auto& x : rows)
    result[2 * x.calls > longest].push_back({x.after_launch() - x.calls * call, x});
  for (auto& some : result)
    std::sort(some.begin(), some.end(), [](auto& a, auto& b) { return a.first < b.first; });
  return result;
}

double error_of_median(std::vector<double> x, double middle) {
  for (auto& one : x) one = std::fabs(one - middle);
  auto n = static_cast<double>(std::max<size_t>(x.size(), 1));
  return of_a_median * of_a_normal * median(std::move(x)) / std::sqrt(n);
}

// Of long rows, as all of a candidate's are: those that are not late beside launches of all rows,
// for most of a few may be. One is left in any case.
std::vector<double> usual_launches(const std::vector<row_times>& rows, unsigned longest) {
  std::vector<double> all;
  std::vector<double> of_long;
  for (const auto& x : rows) {
    all.push_back(x.launched);
    if (2 * x.calls > longest) of_long.push_back(x.launched);
  }
  double least = *std::min_element(of_long.begin(), of_long.end());
  double most = std::max(quantile(std::move(all), 0.25) + late_launch, least);
  std::erase_if(of_long, [&](double one) { return one > most; });
  return of_long;
}

// Those that are left by how late they are differ by less than they do.
double error_of_launch(const std::vector<double>& launches, double usual) {
  if (usual <= 0) return 0;
  auto n = static_cast<double>(launches.size());
  return std::max(error_of_median(launches, usual), launch_spread / std::sqrt(n));
}

double call_of(const std::vector<row_times>& rows) {
  auto line = fit_line(rows);
  return line ? line->call : 0;
}

} // namespace

bool lost_its_core(const row_times& x, double usual) {
  return x.waited - usual > std::max(row_wait_share * (x.row() - x.waited), row_wait_floor);
}

double usual_wait(const std::vector<row_times>& rows) {
  std::vector<double> waits;
  for (const auto& x : rows) waits.push_back(x.waited);
  return std::min(quantile(waits, 0.25), longest_usual_wait);
}

unsigned sets_for(double fastest, double slowest, unsigned most) {
  double wanted = std::ceil(row_seconds / std::max(fastest, 1e-7) / 0.75) + 1;
  double bearable = longest_row_seconds / std::max(slowest, 1e-7);
  auto sets = static_cast<unsigned>(std::min({wanted, bearable, 1e6}));
  return std::clamp(sets, std::min(fewest_sets, most), most);
}

unsigned long_calls(unsigned sets, uint64_t drawn) {
  unsigned high = std::max(sets, 2u) - 1;
  unsigned low = std::min((3 * sets + 3) / 4, high);
  return low + static_cast<unsigned>(drawn % (high - low + 1));
}

unsigned short_calls(unsigned sets) {
  return std::max(sets / 16, 1u);
}

unsigned look_calls(unsigned sets) {
  return std::max(sets / 4, 1u);
}

unsigned fewer_calls(unsigned calls) {
  return (3 * calls + 3) / 4;
}

std::optional<row_line> fit_line(const std::vector<row_times>& rows) {
  unsigned longest = 0;
  for (const auto& x : rows) longest = std::max(longest, x.calls);
  std::vector<double> slopes;
  for (const auto& a : rows)
    for (const auto& b : rows)
      if (b.calls > a.calls && 2 * (b.calls - a.calls) >= longest)
        slopes.push_back((b.after_launch() - a.after_launch()) / (b.calls - a.calls));
  if (slopes.empty()) return std::nullopt;
  row_line result;
  result.call = std::max(median(slopes), 0.0);
  std::vector<double> rest;
  double calls = 0;
  double squares = 0;
  for (const auto& x : rows) {
    rest.push_back(x.after_launch() - x.calls * result.call);
    calls += x.calls;
    squares += static_cast<double>(x.calls) * x.calls;
  }
  auto n = static_cast<double>(rows.size());
  double fixed = median(rest);
  auto launches = usual_launches(rows, longest);
  result.launch = median(launches);
  result.launch_error = error_of_launch(launches, result.launch);
  result.intercept = std::max(fixed + result.launch, 0.0);
  // Of a straight line: the variance grows with how far the mean length is from none.
  double mean = calls / n;
  double spread = std::max(squares / n - mean * mean, 1e-9);
  result.error = error_of_median(std::move(rest), fixed) * std::sqrt(1 + mean * mean / spread);
  return result;
}

row_times at_usual_launch(row_times x, const row_line& line) {
  x.done += line.launch - x.launched;
  x.launched = line.launch;
  return x;
}

std::vector<row_times> least_rows(const std::vector<row_times>& rows) {
  std::vector<row_times> least = rows;
  for (int i = 0; i < 2; ++i) { // long rows are not all of one length: a better line tells better
    double call = call_of(least);
    least.clear();
    for (const auto& some : sorted_rows(rows, call))
      for (size_t j = 0; j < std::min(some.size(), least_of_a_length); ++j)
        least.push_back(some[j].second);
  }
  return least;
}

bool are_enough(const std::vector<row_times>& rows) {
  for (const auto& some : sorted_rows(rows, 0))
    if (!some.empty() && some.size() < least_of_a_length) return false;
  return true;
}

bool are_alike(const std::vector<row_times>& least) {
  double longest = 0;
  for (const auto& x : least) longest = std::max(longest, x.row());
  double most = std::max(alike_share * longest, alike_floor);
  for (const auto& some : sorted_rows(least, call_of(least)))
    if (!some.empty() && some.back().first - some.front().first > most) return false;
  return true;
}

double free_intercept(const row_line& now, const row_line& quiet) {
  double most = quiet.intercept * intercept_factor + 2 * quiet.error + intercept_floor;
  return std::clamp(now.intercept, 0.0, most);
}

double call_seconds(const row_times& x, double intercept, double charged) {
  double row = std::max(x.row(), least_row);
  return (std::max(row - intercept, least_share * row) + charged) / std::max(x.calls, 1u);
}

double believed_share(double call_now, double call_quiet) {
  if (call_now <= 0 || call_quiet <= 0) return 1;
  return std::min(1.0, believed_slowdown * call_quiet / call_now);
}

double to_keep_apart(const std::vector<row_times>& apart, const row_line& line) {
  if (apart.size() < fewest_for_a_median) return most_to_keep_apart;
  std::vector<double> costs;
  std::vector<double> calls;
  for (const auto& x : apart) {
    costs.push_back(call_seconds(at_usual_launch(x, line), line.intercept, 0) - line.call);
    calls.push_back(std::max(x.calls, 1u));
  }
  double unsure = cost_slack + 2 * line.error / median(std::move(calls));
  return std::clamp(median(std::move(costs)) + unsure, 0.0, most_to_keep_apart);
}

double beside_others(const both_ways& candidate, const both_ways& baseline, double most_cost) {
  double cost = std::clamp(baseline.apart - baseline.as_they_come, 0.0, most_cost);
  double beside = candidate.apart - cost - candidate.as_they_come;
  return beside > beside_share * candidate.as_they_come + beside_floor ? beside : 0;
}

std::vector<double> charges(const std::vector<contents_pair>& pairs,
                            const std::vector<double>& usual, double most_spread) {
  double middle = median(usual);
  double spread = quantile(usual, 0.75) - quantile(usual, 0.25);
  double alike = contents_share * middle + contents_floor;
  auto n = static_cast<double>(std::max<size_t>(std::min(pairs.size(), usual.size()), 1));
  std::vector<double> longer;
  for (const auto& x : pairs) longer.push_back(x.candidate - x.reference);
  bool known = std::min(pairs.size(), usual.size()) >= fewest_for_a_median;
  double noise = 2 * std::min(spread, most_spread) / std::sqrt(n);
  double usually = known ? median(longer) - noise - alike : 0;
  double most = std::max(quantile(usual, 0.95) - middle, spread) + alike;
  std::vector<double> result;
  for (double x : longer) result.push_back(std::max({0.0, usually, x - most}));
  return result;
}

} // namespace kernelmill
