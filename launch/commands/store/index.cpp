#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/store/index_embedder.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/source_text.hpp"
#include "messages/base/text.hpp"
#include "retrieval/code/reference_code.hpp"
#include "retrieval/search/index.hpp"
#include "retrieval/search/live_kernels.hpp"
#include "storage/files.hpp"

namespace kernelmill::commands {

namespace {

using index_json = nlohmann::ordered_json;

expected<retrieval_query> query_of(const invocation& in) {
  auto count = in.integer("--count", 1, static_cast<int64_t>(max_results));
  KM_TRY(count);
  retrieval_query query;
  if (in.has("TEXT")) query.text = joined(in.list("TEXT"), " ");
  if (in.has("--reference")) {
    auto code = read_file(in.value("--reference"));
    KM_TRY(code);
    query.reference = normal_source(*code);
    if (read_reference(query.reference).operators.empty())
      cli::talk(
          fmt::format("{}: no operator of PyTorch was found in it, so that its words alone are "
                      "searched",
                      in.value("--reference")));
  }
  if (query.text.empty() && query.reference.empty())
    return configuration_error("usage", "failed to run 'index query': there is nothing to search",
                               "give it words, or code: --reference FILE");
  query.count = static_cast<size_t>(*count);
  query.exclude_task = in.value("--exclude-task");
  query.family = in.value("--family");
  query.backend = in.value("--backend");
  query.language = in.value("--language");
  return query;
}

expected<double> weight_in(const invocation& in, const char* name, double most) {
  const auto& text = in.value(name);
  char* end = nullptr;
  double x = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !std::isfinite(x) || x < 0 || x > most)
    return configuration_error("usage",
                               fmt::format("failed to read {}: '{}' is not a number from 0 to {}",
                                           name, cli::clean(text), most),
                               "give such a number");
  return x;
}

expected<retrieval_weights> weights_of(const invocation& in) {
  auto code = weight_in(in, "--code-weight", 1);
  KM_TRY(code);
  auto words = weight_in(in, "--words-weight", 100);
  KM_TRY(words);
  return retrieval_weights{*code, *words};
}

expected<int> index_query(const invocation& in) {
  auto query = query_of(in);
  KM_TRY(query);
  auto weights = weights_of(in);
  KM_TRY(weights);
  auto embedding = embedder_of(in);
  KM_TRY(embedding);
  auto index = open_index(in.value("DIR"), std::move(*embedding));
  KM_TRY(index);
  auto live = read_live_kernels(in.value("DIR"));
  KM_TRY(live);
  if (auto warning = warning_of(*live, in.value("DIR")); !warning.empty()) cli::talk(warning);
  KM_TRY(take_up_live_kernels(*index, *live));
  index->weigh(*weights);
  auto answer = index->query(*query);
  KM_TRY(answer);
  index_json results = index_json::array();
  std::vector<std::vector<std::string>> rows;
  for (const auto& [x, score] : answer->results) {
    index_json speedup;
    if (x.speedup > 0) speedup = x.speedup;
    results.push_back({{"id", x.id},
                       {"kind", x.kind},
                       {"title", x.title},
                       {"source", x.source},
                       {"task", x.task},
                       {"speedup", speedup},
                       {"device", x.device},
                       {"date", x.date},
                       {"origin", x.origin},
                       {"rights_source", x.rights_source},
                       {"score", score},
                       {"operators", cli::clean(x.operators)},
                       {"text", cli::clean(x.text)}});
    rows.push_back({fmt::format("{:.3f}", score), x.kind,
                    x.speedup > 0 ? fmt::format("{:.2f}x", x.speedup) : "-",
                    x.origin.empty() ? "-" : cli::clean(x.origin), cli::clean(x.id),
                    cli::clean(x.title)});
  }
  if (in.json)
    cli::print_json({{"query", query->text}, {"results", results}, {"withheld", answer->withheld}});
  else
    cli::print(cli::format_table({"SCORE>", "KIND", "SPEEDUP>", "ORIGIN", "ID", "TITLE"}, rows));
  if (answer->withheld > 0)
    cli::talk(fmt::format("{} left out, which would give a solution of the excluded task away",
                          answer->withheld == 1 ? "1 entry"
                                                : fmt::format("{} entries", answer->withheld)));
  return 0;
}

} // namespace

cli::command index_query_row() {
  return with_embedder_options(
      {"index query",
       "Searches a retrieval index.",
       "kernelmill index query index sum of each row\n"
       "kernelmill index query index --reference problem.py --language triton",
       "Kernels that are good enough come before cards. SCORE is by vectors alone; the order "
       "counts "
       "words, too.",
       {{"DIR", "Folder of the index.", true, false, completes::directory, {}},
        {"TEXT", "Search text. Not needed with --reference.", false, true, nothing, {}}},
       {{"--reference",
         "FILE",
         "PyTorch code: finds kernels of like computations.",
         "",
         false,
         {},
         completes::file},
        {"--language",
         "NAME",
         "Only kernels written in it.",
         "",
         false,
         {"cpp", "cuda", "hip", "triton", "python"},
         nothing},
        {"--count", "N", "Maximum number of results.", "5", false, {}, nothing},
        {"--exclude-task",
         "TASK",
         "Leaves out kernels that solve this task.",
         "",
         false,
         {},
         completes::task},
        {"--family", "NAME", "Ranks this operator family higher.", "", false, {}, nothing},
        {"--backend",
         "NAME",
         "Leaves out kernels for other backends, and ranks its cards higher.",
         "",
         false,
         {"cpu", "cuda", "hip"},
         nothing},
        {"--code-weight",
         "X",
         "Share of the reference in the query's vector, beside TEXT, 0 to 1.",
         fmt::format("{}", retrieval_weights{}.code),
         false,
         {},
         nothing},
        {"--words-weight",
         "X",
         "Weight of the ranks by words, 0 to 100. 0: by vectors alone.",
         fmt::format("{}", retrieval_weights{}.words),
         false,
         {},
         nothing}},
       index_query});
}

} // namespace kernelmill::commands
