#include "gpu/referee/device/clocked_rows.hpp"

#include <algorithm>
#include <cmath>

#include "gpu/referee/device/disturbed_rows.hpp"

namespace kernelmill {

namespace {

constexpr double longer_factor = 1.06;
constexpr size_t fewest_apart = 3;
constexpr double noise_share = 0.2; // of contents, by which theirs may vary; more somebody made

double calls_of(const row_times& x) {
  return std::max(x.calls, 1u);
}

double seconds_a_call(const row_times& x) {
  return x.row() / calls_of(x);
}

// What is charged for work before the clock in these of the rows.
std::vector<double> charges_of(const std::vector<row_pair>& some, const clocked_rows& rows,
                               const std::function<double(size_t)>& most_contents) {
  std::vector<contents_pair> pairs;
  for (const auto& x : some)
    pairs.push_back({x.candidate.contents, std::min(x.reference.contents, most_contents(x.kind))});
  std::vector<double> usual;
  for (const auto& x : rows.baseline) usual.push_back(x.contents);
  return charges(pairs, usual, noise_share * most_contents(0));
}

// Of pairs with one kind of contents. The baseline is there also as it came, however late its first
// launches were.
struct pair_sides {
  side_rows candidate;
  side_rows reference;
  side_rows as_it_came;
};

// `candidate`: seconds of a call in its row of each pair.
pair_sides sides_of(const std::vector<row_pair>& pairs, std::vector<double> candidate,
                    const clocked_times& times) {
  std::vector<double> reference;
  std::vector<double> as_it_came;
  std::vector<double> candidate_calls;
  std::vector<double> reference_calls;
  for (const auto& x : pairs) {
    candidate_calls.push_back(calls_of(x.candidate));
    reference.push_back(times.call_of_baseline(x.reference));
    reference_calls.push_back(calls_of(x.reference));
    as_it_came.push_back(call_seconds(x.reference, times.intercept, 0) * times.share);
  }
  return {side_of(std::move(candidate), std::move(candidate_calls)),
          side_of(std::move(reference), reference_calls),
          side_of(std::move(as_it_came), std::move(reference_calls))};
}

// Of pairs with the task's own contents those that count, and all others: of these there are too
// few rows to tell.
std::vector<bool> which_count(const clocked_rows& rows, const std::vector<timed_block>& blocks,
                              const clocked_times& times) {
  std::vector<row_pair> own;
  std::vector<double> candidate;
  for (size_t i = 0; i < rows.pairs.size(); ++i) {
    if (rows.pairs[i].kind != 0) continue;
    own.push_back(rows.pairs[i]);
    candidate.push_back(blocks[i].candidate[0]);
  }
  auto sides = sides_of(own, std::move(candidate), times);
  auto counts = undisturbed(sides.candidate, sides.reference, sides.as_it_came);
  auto next = counts.begin();
  std::vector<bool> result;
  for (const auto& x : rows.pairs) result.push_back(x.kind != 0 || *next++);
  return result;
}

row_times without(row_times x, double seconds) {
  x.done -= seconds;
  return x;
}

// What a candidate is charged for work before the clock, by row.
struct row_charges {
  std::vector<double> pairs;
  std::vector<double> apart;
};

// Of a candidate's calls, if its rows take `more` seconds besides calls than what is subtracted.
both_ways ways_of_candidate(const clocked_rows& rows, const row_charges& charged,
                            const std::vector<bool>& counts, const clocked_times& times,
                            double more) {
  std::vector<double> as_they_come;
  for (size_t i = 0; i < rows.pairs.size(); ++i)
    if (rows.pairs[i].kind == 0 && counts[i])
      as_they_come.push_back(
          call_seconds(without(rows.pairs[i].candidate, more), times.intercept, charged.pairs[i]));
  if (as_they_come.empty()) return {};
  std::vector<double> apart;
  for (size_t i = 0; i < rows.apart.size(); ++i)
    apart.push_back(
        call_seconds(without(rows.apart[i].candidate, more), times.intercept, charged.apart[i]));
  auto sides = sides_of(rows.apart, std::move(apart), times);
  return {median(std::move(as_they_come)), usual_beside(sides.candidate, sides.as_it_came)};
}

both_ways ways_of_baseline(const clocked_rows& rows, const std::vector<timed_block>& blocks,
                           const std::vector<bool>& counts, const clocked_times& times) {
  std::vector<double> as_they_come;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (rows.pairs[i].kind == 0 && counts[i]) as_they_come.push_back(blocks[i].reference[0]);
  if (as_they_come.empty()) return {};
  std::vector<double> apart;
  for (const auto& x : rows.apart) apart.push_back(times.call_of_baseline(x.reference));
  auto calls = sides_of(rows.apart, apart, times).reference;
  return {median(std::move(as_they_come)), usual_of(calls)};
}

// Rows of calls apart may be shorter, and what is no call's is then a larger part of theirs. A
// candidate's rows may take besides calls what the baseline's take now; but who made the baseline's
// longer has nothing of it in its own, which take what they did while it was quiet.
void keep_apart(const clocked_rows& rows, const std::vector<timed_block>& blocks,
                const row_charges& charged, const std::vector<bool>& counts, const row_line& quiet,
                clocked_times& into) {
  if (rows.apart.size() < fewest_apart) return;
  auto baseline = ways_of_baseline(rows, blocks, counts, into);
  auto ways = [&](double more) { return ways_of_candidate(rows, charged, counts, into, more); };
  auto as_baseline = ways(into.not_subtracted());
  auto as_quiet = ways(std::min(quiet.intercept - into.intercept, 0.0));
  into.apart = as_baseline.apart;
  into.cost = baseline.apart - baseline.as_they_come;
  into.beside = beside_others(as_baseline, baseline, quiet.to_keep_apart);
  into.most_beside = std::max(into.beside, beside_others(as_quiet, baseline, quiet.to_keep_apart));
}

// Seconds of a usual row that are its calls'.
double paid_row(const clocked_times& times, const std::vector<row_pair>& pairs,
                row_times row_pair::*side) {
  std::vector<double> rows;
  for (const auto& x : pairs) rows.push_back((x.*side).row());
  double row = median(std::move(rows));
  return std::max(row - times.intercept, 0.2 * row);
}

} // namespace

double clocked_times::call_of_baseline(const row_times& x) const {
  auto usual = line;
  usual.launch -= not_subtracted();
  return call_seconds(at_usual_launch(x, usual), intercept, 0) * share;
}

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
  row_charges charged{charges_of(rows.pairs, rows, most_contents),
                      charges_of(rows.apart, rows, most_contents)};
  std::vector<timed_block> blocks;
  for (size_t i = 0; i < rows.pairs.size(); ++i) {
    const auto& x = rows.pairs[i];
    double reference = result.call_of_baseline(x.reference);
    double candidate = call_seconds(x.candidate, result.intercept, charged.pairs[i]);
    blocks.push_back({{reference, reference}, {candidate, candidate}, i});
  }
  auto counts = which_count(rows, blocks, result);
  keep_apart(rows, blocks, charged, counts, quiet, result);
  for (auto& x : blocks)
    for (auto& seconds : x.candidate) seconds += result.beside;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (counts[i]) result.kinds[rows.pairs[i].kind].blocks.push_back(blocks[i]);
  return result;
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

double most_withheld(const clocked_times& times, const std::vector<row_pair>& pairs) {
  double row = paid_row(times, pairs, &row_pair::candidate);
  double more = std::min(times.not_subtracted(), 0.8 * row);
  return row > 0 ? row / (row - more) : 1;
}

double spread_of(const clocked_times& times, const std::vector<row_pair>& pairs) {
  double a = paid_row(times, pairs, &row_pair::candidate);
  double b = paid_row(times, pairs, &row_pair::reference);
  if (a <= 0 || b <= 0) return 0;
  return std::hypot(times.line.error * (1 / a - 1 / b), times.line.launch_error / a);
}

} // namespace kernelmill
