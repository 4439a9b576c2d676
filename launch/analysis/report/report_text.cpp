#include <fmt/format.h>

#include "launch/analysis/report/report.hpp"
#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::reporting {

namespace {

using json = nlohmann::ordered_json;
using row_of_cells = std::vector<std::string>;

/// "0.625 (5/8)", or "-" where there is nothing to share; for programs share and count.
std::vector<std::string> share_cells(uint64_t count, uint64_t n) {
  if (n == 0) return cli::one_or_plain("-", {"-", fmt::to_string(count)});
  auto share = static_cast<double>(count) / static_cast<double>(n);
  return cli::one_or_plain(fmt::format("{:.3f} ({}/{})", share, count, n),
                           {cli::plain_number(share), fmt::to_string(count)});
}

std::vector<std::string> share_headers(const std::string& name) {
  return cli::one_or_plain(name + ">", {name + ">", name + " COUNT>"});
}

/// "1.46 (n 2)"; for programs the value and how many it is of.
std::vector<std::string> average_cells(const std::optional<double>& value, uint64_t n, int digits) {
  auto shown =
      value ? fmt::format("{:.{}f} (n {})", *value, digits, n) : fmt::format("- (n {})", n);
  return cli::one_or_plain(std::move(shown), {cli::plain_number(value), fmt::to_string(n)});
}

std::vector<std::string> average_headers(const std::string& name) {
  return cli::one_or_plain(name + ">", {name + ">", name + " N>"});
}

json number(const std::optional<double>& x) {
  return x ? json(*x) : json(nullptr);
}

json share_json(uint64_t count, uint64_t n) {
  json share = nullptr;
  if (n > 0) share = static_cast<double>(count) / static_cast<double>(n);
  return {{"count", count}, {"n", n}, {"share", share}};
}

const char* heading(grouping by) {
  return by == grouping::verb ? "VERB" : by == grouping::family ? "FAMILY" : "LEVEL";
}

const char* word(grouping by) {
  return by == grouping::verb ? "verb" : by == grouping::family ? "family" : "level";
}

std::string rates(const std::vector<const report_row*>& rows, const report& of) {
  row_of_cells head{heading(of.by), "PROBLEMS>", "SAMPLES>", "INFRA>", "OPEN>"};
  cli::add_cells(head, share_headers("COMPILED"));
  cli::add_cells(head, share_headers("CORRECT"));
  head.emplace_back("TIMED>");
  for (const auto& f : rows.front()->fast)
    cli::add_cells(head, share_headers(fmt::format("FAST_{:g}", f.p)));
  cli::add_cells(head, share_headers("FAST_1 LOW"));
  std::vector<row_of_cells> cells;
  for (const auto* x : rows) {
    auto left_out = [&](uint64_t n) { return of.knows_left_out ? fmt::to_string(n) : "-"; };
    row_of_cells line{x->group, fmt::to_string(x->problems), fmt::to_string(x->samples),
                      left_out(x->infrastructure), left_out(x->open)};
    cli::add_cells(line, share_cells(x->compiled, x->samples));
    cli::add_cells(line, share_cells(x->correct, x->samples));
    cli::add_cells(line, cli::one_or_plain(fmt::format("{}/{}", x->timed, x->correct),
                                           {fmt::to_string(x->timed)}));
    for (const auto& f : x->fast) cli::add_cells(line, share_cells(f.count, x->samples));
    // Without a single interval a 0 would claim what was not measured.
    bool unknown = x->timed > 0 && x->with_interval == 0;
    cli::add_cells(line, unknown ? cli::one_or_plain("-", {"-", "-"})
                                 : share_cells(x->fast_1_by_low, x->samples));
    cells.push_back(std::move(line));
  }
  return cli::format_table(head, cells);
}

std::string means(const std::vector<const report_row*>& rows, const report& of) {
  row_of_cells head{heading(of.by)};
  for (const auto& x : rows.front()->pass)
    cli::add_cells(head, average_headers(fmt::format("PASS@{}", x.k)));
  for (const auto* x : {"GEOMEAN SPEEDUP", "OF FASTER", "TURNS", "MEDIAN"})
    cli::add_cells(head, average_headers(x));
  std::vector<row_of_cells> cells;
  for (const auto* x : rows) {
    row_of_cells line{x->group};
    for (const auto& pass : x->pass)
      cli::add_cells(line, average_cells(pass.value, pass.problems, 3));
    for (const auto& mean : {x->geomean_speedup, x->geomean_speedup_of_faster, x->turns_mean})
      cli::add_cells(line, average_cells(mean.value, mean.n, 2));
    cli::add_cells(line, average_cells(x->turns_median.value, x->turns_median.n, 1));
    cells.push_back(std::move(line));
  }
  return cli::format_table(head, cells);
}

json row_json(const report_row& x, bool knows_left_out) {
  json result = {{"group", x.group}, {"level", x.level ? json(*x.level) : json(nullptr)}};
  result["problems"] = x.problems;
  result["samples"] = x.samples;
  result["left_out"] =
      knows_left_out ? json{{"infrastructure", x.infrastructure}, {"open", x.open}} : json(nullptr);
  result["compiled"] = share_json(x.compiled, x.samples);
  result["correct"] = share_json(x.correct, x.samples);
  result["timed"] = x.timed;
  result["not_timed"] = x.not_timed;
  result["timed_with_interval"] = x.with_interval;
  result["fast_p"] = json::array();
  for (const auto& f : x.fast)
    result["fast_p"].push_back({{"p", f.p},
                                {"by_estimate", share_json(f.count, x.samples)},
                                {"by_lower_bound", share_json(f.count_by_low, x.samples)}});
  result["fast_1_by_lower_bound"] = share_json(x.fast_1_by_low, x.samples);
  result["pass_at_k"] = json::array();
  for (const auto& p : x.pass)
    result["pass_at_k"].push_back(
        {{"k", p.k}, {"probability", number(p.value)}, {"problems", p.problems}});
  result["geomean_speedup"] = number(x.geomean_speedup.value);
  result["geomean_speedup_samples"] = x.geomean_speedup.n;
  result["geomean_speedup_of_faster"] = number(x.geomean_speedup_of_faster.value);
  result["geomean_speedup_of_faster_samples"] = x.geomean_speedup_of_faster.n;
  result["best_speedup_lower"] = number(x.best_speedup_lower);
  result["turns_to_first_correct"] = {{"mean_turns", number(x.turns_mean.value)},
                                      {"median_turns", number(x.turns_median.value)},
                                      {"episodes", x.turns_mean.n}};
  return result;
}

} // namespace

std::string to_text(const report& x) {
  std::vector<const report_row*> rows;
  for (const auto& row : x.groups) rows.push_back(&row);
  rows.push_back(&x.all);
  auto first = rates(rows, x); // in this order: -o csv prints the first table
  return first + "\n" + means(rows, x);
}

json to_json(const report& x) {
  json result = {{"group_by", word(x.by)}, {"groups", json::array()}};
  for (const auto& row : x.groups) result["groups"].push_back(row_json(row, x.knows_left_out));
  result["all"] = row_json(x.all, x.knows_left_out);
  return result;
}

} // namespace kernelmill::reporting
