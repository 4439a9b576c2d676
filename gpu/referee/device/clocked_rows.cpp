#include "gpu/referee/device/clocked_rows.hpp"

#include <algorithm>
#include <cmath>

namespace kernelmill {

namespace {

constexpr double disturbed_factor = 1.08;
constexpr size_t fewest_undisturbed = 3;
constexpr double longer_factor = 1.06;
constexpr size_t fewest_apart = 3;
constexpr size_t enough_for_a_median = 8;
constexpr double noise_share = 0.2; // of contents, by which theirs may vary; more somebody made

double seconds_a_call(const row_times& x) {
  return x.row() / std::max(x.calls, 1u);
}

std::vector<double> charges_of(const clocked_rows& rows,
                               const std::function<double(size_t)>& most_contents) {
  std::vector<contents_pair> pairs;
  for (const auto& x : rows.pairs)
    pairs.push_back({x.candidate.contents, std::min(x.reference.contents, most_contents(x.kind))});
  std::vector<double> usual;
  for (const auto& x : rows.baseline) usual.push_back(x.contents);
  return charges(pairs, usual, noise_share * most_contents(0));
}

// The lower quartile. REQUIRES: there is one.
double quarter_of(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 4];
}

// Whether so many of a candidate's rows are plainly longer as others may have made them: as many as
// the baseline's are longer by so many seconds, and what chance adds.
bool is_by_others(double longer, double baseline_longer) {
  return longer <= baseline_longer + 2 * std::sqrt(baseline_longer + 1) + 1;
}

// The lower quartile of what a call took on one side with the task's own contents.
double usual_of(const std::vector<row_pair>& pairs, const std::vector<timed_block>& blocks,
                double (timed_block::*side)[2]) {
  std::vector<double> own;
  for (size_t i = 0; i < pairs.size(); ++i)
    if (pairs[i].kind == 0) own.push_back((blocks[i].*side)[0]);
  return own.empty() ? 0 : quarter_of(std::move(own));
}

// Other programs only ever make a row longer, whosever it is. Rows that are plainly longer than a
// quarter of their side's with the task's own contents say nothing: of the candidate's as many as
// the baseline's are longer by so many seconds, and what chance adds. Where more are, it is slow
// now and then by itself, and all of its rows count.
std::vector<bool> undisturbed(const std::vector<row_pair>& pairs,
                              const std::vector<timed_block>& blocks) {
  double reference = usual_of(pairs, blocks, &timed_block::reference);
  double candidate = usual_of(pairs, blocks, &timed_block::candidate);
  double plainly = candidate * (disturbed_factor - 1); // seconds of a call
  double longer = 0;
  double baseline_longer = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].kind != 0) continue;
    longer += blocks[i].candidate[0] > candidate + plainly;
    baseline_longer += blocks[i].reference[0] > reference + plainly;
  }
  bool by_others = is_by_others(longer, baseline_longer);
  std::vector<bool> result(pairs.size(), true);
  size_t left = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].kind != 0) continue;
    result[i] = blocks[i].reference[0] <= reference * disturbed_factor &&
                (!by_others || blocks[i].candidate[0] <= candidate + plainly);
    left += result[i] ? 1 : 0;
  }
  if (left < fewest_undisturbed) result.assign(pairs.size(), true);
  return result;
}

size_t longer_than(const std::vector<double>& x, double seconds) {
  return static_cast<size_t>(
      std::count_if(x.begin(), x.end(), [&](double one) { return one > seconds; }));
}

// What a call apart usually takes. REQUIRES: none of both is empty.
double usual_apart(const std::vector<double>& candidate, const std::vector<double>& baseline) {
  double usual = quarter_of(candidate);
  double plainly = usual * (disturbed_factor - 1);
  auto longer = static_cast<double>(longer_than(candidate, usual + plainly));
  auto theirs = static_cast<double>(longer_than(baseline, quarter_of(baseline) + plainly));
  bool all_count = candidate.size() >= enough_for_a_median && !is_by_others(longer, theirs);
  return all_count ? median(candidate) : usual_of_few(candidate);
}

void keep_apart(const clocked_rows& rows, const std::vector<timed_block>& blocks,
                const std::vector<bool>& counts, clocked_times& into) {
  if (rows.apart.size() < fewest_apart) return;
  std::vector<double> candidate;
  std::vector<double> baseline;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (rows.pairs[i].kind != 0 || !counts[i]) continue;
    candidate.push_back(blocks[i].candidate[0]);
    baseline.push_back(blocks[i].reference[0]);
  }
  if (candidate.empty()) return;
  std::vector<double> candidate_apart;
  std::vector<double> baseline_apart;
  for (const auto& x : rows.apart) {
    candidate_apart.push_back(call_seconds(x.candidate, into.intercept, 0));
    baseline_apart.push_back(call_seconds(x.reference, into.intercept, 0) * into.share);
  }
  into.apart = usual_apart(candidate_apart, baseline_apart);
  both_ways theirs{median(baseline), usual_of_few(baseline_apart)};
  into.cost = theirs.apart - theirs.as_they_come;
  into.beside = beside_others({median(candidate), into.apart}, theirs);
}

} // namespace

std::optional<clocked_times> times_of(const clocked_rows& rows, const row_line& quiet,
                                      const std::vector<std::string>& kinds,
                                      const std::function<double(size_t)>& most_contents) {
  auto line = fit_line(rows.baseline);
  if (!line) return std::nullopt;
  clocked_times result;
  result.line = *line;
  result.intercept = free_intercept(*line, quiet);
  result.share = believed_share(line->call, quiet.call);
  for (const auto& name : kinds) result.kinds.push_back({name, {}});
  auto charged = charges_of(rows, most_contents);
  std::vector<timed_block> blocks;
  for (size_t i = 0; i < rows.pairs.size(); ++i) {
    const auto& x = rows.pairs[i];
    double reference = call_seconds(x.reference, result.intercept, 0) * result.share;
    double candidate = call_seconds(x.candidate, result.intercept, charged[i]);
    blocks.push_back({{reference, reference}, {candidate, candidate}, i});
  }
  auto counts = undisturbed(rows.pairs, blocks);
  keep_apart(rows, blocks, counts, result);
  for (auto& x : blocks)
    for (auto& seconds : x.candidate) seconds += result.beside;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (counts[i]) result.kinds[rows.pairs[i].kind].blocks.push_back(blocks[i]);
  return result;
}

double usual_of_few(std::vector<double> x) {
  if (x.empty()) return 0;
  double quarter = quarter_of(x);
  if (x.size() < enough_for_a_median) return quarter;
  std::erase_if(x, [&](double one) { return one > quarter * disturbed_factor; });
  return median(std::move(x));
}

bool is_longer(const row_pair& x, const std::vector<row_pair>& pairs) {
  auto longer = [&](auto side) {
    std::vector<double> own;
    for (const auto& one : pairs)
      if (one.kind == 0) own.push_back(seconds_a_call(one.*side));
    return !own.empty() && seconds_a_call(x.*side) > longer_factor * median(own);
  };
  return longer(&row_pair::reference) || longer(&row_pair::candidate);
}

void keep_shorter(row_pair& x, const row_pair& again) {
  for (auto side : {&row_pair::reference, &row_pair::candidate})
    if (seconds_a_call(again.*side) < seconds_a_call(x.*side)) x.*side = again.*side;
}

double spread_of(const clocked_times& times, const std::vector<row_pair>& pairs) {
  std::vector<double> candidate;
  std::vector<double> reference;
  for (const auto& x : pairs) {
    candidate.push_back(x.candidate.row());
    reference.push_back(x.reference.row());
  }
  auto paid = [&](double row) { return std::max(row - times.intercept, 0.2 * row); };
  double a = paid(median(candidate));
  double b = paid(median(reference));
  return a > 0 && b > 0 ? times.line.error * std::fabs(1 / a - 1 / b) : 0;
}

} // namespace kernelmill
