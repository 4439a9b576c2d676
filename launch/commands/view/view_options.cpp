#include "launch/commands/view/view_options.hpp"

#include <cmath>

#include <fmt/format.h>

#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/views.hpp"
#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/head_asking.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

using json = nlohmann::ordered_json;

expected<view_client> view_client::open(const invocation& in) {
  view_client result;
  result.root_ = in.value("--root");
  if (!asks_head(in)) return result;
  auto head = head_of(in);
  KM_TRY(head);
  auto line = head_line::open(*head, link_of(in));
  KM_TRY(line);
  result.line_ = std::move(*line);
  return result;
}

expected<json> view_client::ask(const std::string& view, const json& query) {
  if (!line_) return watch::answer(watch::local_world(root_), view, query);
  return line_->ask("look", view, query.dump(-1, ' ', false, json::error_handler_t::replace));
}

expected<json> look(const invocation& in, const std::string& view, const json& query) {
  auto views = view_client::open(in);
  KM_TRY(views);
  return views->ask(view, query);
}

std::vector<cli::option_spec> with_view_options(std::vector<cli::option_spec> options) {
  options.push_back(runs_root());
  options.push_back({"--head",
                     "ADDR:PORT",
                     "Asks this head about its runs instead of looking below --root. Default: "
                     "$KERNELMILL_HEAD where --root is not given.",
                     "",
                     false,
                     {},
                     nothing});
  options.push_back(credentials());
  options.push_back(insecure());
  return options;
}

std::vector<cli::option_spec> with_list_options(std::vector<cli::option_spec> options) {
  options.push_back({"--where",
                     "EXPR",
                     "Shows rows that match, such as 'state=queued and age>60'. Keys are those of "
                     "--json.",
                     "",
                     false,
                     {},
                     nothing});
  options.push_back({"--sort",
                     "KEY",
                     "Sorts by a key of --json; -KEY sorts the other way (--sort=-age).",
                     "",
                     false,
                     {},
                     nothing});
  return with_view_options(std::move(options));
}

json list_query(const invocation& in) {
  auto result = json::object();
  if (in.has("--where")) result["where"] = in.value("--where");
  if (in.has("--sort")) result["sort"] = in.value("--sort");
  return result;
}

// -- cells of tables ------------------------------------------------------------------------------

std::string cell(const json& row, const char* key) {
  auto i = row.find(key);
  if (i == row.end() || i->is_null()) return "-";
  auto text = i->is_string() ? i->get<std::string>() : i->dump();
  return text.empty() ? "-" : one_line(text, 4000);
}

std::string count_cell(const json& row, const char* key) {
  auto i = row.find(key);
  if (i == row.end() || !i->is_number()) return "-";
  return fmt::format("{:.0f}", i->get<double>());
}

std::string counted_cell(const json& row, const char* key, const char* noun) {
  auto count = count_cell(row, key);
  return count + " " + noun + (count == "1" ? "" : "s");
}

std::string seconds_cell(const json& row, const char* key) {
  auto i = row.find(key);
  return i == row.end() || !i->is_number() ? "-" : cli::seconds_or_plain(i->get<double>());
}

std::string number_cell(const json& row, const char* key, int digits) {
  auto i = row.find(key);
  if (i == row.end() || !i->is_number() || !std::isfinite(i->get<double>())) return "-";
  return fmt::format("{:.{}f}", i->get<double>(), digits);
}

std::string run_cell(const json& row) {
  auto folder = cell(row, "folder"), name = cell(row, "run");
  return folder == "-" || folder == name ? name : folder + " (" + name + ")";
}

std::string position_cell(const json& row) {
  auto i = row.find("position");
  return i == row.end() || !i->is_number() ? "-" : watch::ordinal_text(i->get<uint64_t>());
}

std::string one_line(const std::string& text, size_t count) {
  auto result = cli::clean(text);
  for (auto& c : result)
    if (c == '\n' || c == '\t') c = ' ';
  return cli::shorten(result, count);
}

} // namespace kernelmill::commands
