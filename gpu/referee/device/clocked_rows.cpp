#include "gpu/referee/device/clocked_rows.hpp"

#include <algorithm>
#include <cmath>

namespace kernelmill {

namespace {

std::vector<double> charges_of(const clocked_rows& rows,
                               const std::function<double(size_t)>& most_contents) {
  std::vector<contents_pair> pairs;
  for (const auto& x : rows.pairs)
    pairs.push_back({x.candidate.contents, std::min(x.reference.contents, most_contents(x.kind))});
  std::vector<double> usual;
  for (const auto& x : rows.baseline) usual.push_back(x.contents);
  return charges(pairs, usual);
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
  for (size_t i = 0; i < rows.pairs.size(); ++i) {
    const auto& x = rows.pairs[i];
    double reference = call_seconds(x.reference, result.intercept, 0) * result.share;
    double candidate = call_seconds(x.candidate, result.intercept, charged[i]);
    result.kinds[x.kind].blocks.push_back({{reference, reference}, {candidate, candidate}});
  }
  return result;
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
