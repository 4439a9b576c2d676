// `kernelmill page`: the monitor's page of a folder of runs, in progress or over.

#include <filesystem>

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/interrupt.hpp"
#include "launch/commands/monitoring.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

expected<std::filesystem::path> folder_of_runs(const invocation& in) {
  std::string named = in.value("ROOT").empty() ? "runs" : in.value("ROOT");
  std::error_code code;
  auto root = std::filesystem::canonical(named, code);
  if (code || !std::filesystem::is_directory(root, code))
    return configuration_error("not_found", "failed to read " + named + ": there is no such folder",
                               "name the folder that holds the runs, such as `runs`");
  // The directory of one run stands for the folder that holds it.
  if (std::filesystem::exists(root / "manifest.json", code)) root = root.parent_path();
  return root;
}

expected<int> page_export(const invocation& in) {
  auto root = folder_of_runs(in);
  KM_TRY(root);
  auto counts =
      page::store_page(watch::local_world(root->string()), in.value("DIR"), in.list("--run"),
                       [](const std::string& name) { cli::show_activity("writing " + name); });
  KM_TRY(counts);
  if (in.json)
    cli::print_json({{"folder", in.value("DIR")},
                     {"runs", counts->runs},
                     {"episodes", counts->episodes},
                     {"bytes", counts->bytes}});
  else
    cli::print(fmt::format("{}/index.html\n{}, {}, {:.1f} MB\n", in.value("DIR"),
                           counted(counts->runs, "run"), counted(counts->episodes, "episode"),
                           static_cast<double>(counts->bytes) / 1e6));
  return cli::exit_ok;
}

expected<int> page(const invocation& in) {
  auto options = monitor_options(in, "--listen");
  KM_TRY(options);
  auto root = folder_of_runs(in);
  KM_TRY(root);
  (*options)->world = watch::local_world(root->string());
  (*options)->reads_ahead = true;
  interrupt stop;
  auto service = page::service::start(std::move(**options));
  KM_TRY(service);
  if (in.json)
    cli::print_json({{"url", (*service)->url()}});
  else
    cli::print((*service)->url() + "\n");
  cli::finish_output();
  stop.wait();
  return cli::exit_ok;
}

} // namespace

cli::command page_row() {
  std::vector<cli::option_spec> options{{"--listen",
                                         "ADDR:PORT",
                                         "Address to listen on; port 0 takes a free one. Beyond "
                                         "127.0.0.1 a token and TLS are required.",
                                         "127.0.0.1:0",
                                         false,
                                         {},
                                         nothing}};
  for (auto& x : access_options()) options.push_back(std::move(x));
  return without_tables(
      {"page",
       "Serves the monitor's page, its JSON API and /metrics of a folder of runs.",
       "kernelmill page runs\n"
       "kernelmill page runs --listen 127.0.0.1:7700",
       "Shows runs in progress on this machine and runs that are over. Prints its URL once it "
       "answers, and ends with\n"
       "Ctrl-C. `run` and `resume` serve the same page with --monitor. From another machine: "
       "`ssh -L 7700:127.0.0.1:7700 HOST`.\n`kernelmill serve` evaluates "
       "candidates.",
       {{"ROOT",
         "Folder that holds the runs. Default: runs.",
         false,
         false,
         completes::directory,
         {}}},
       options,
       page});
}

cli::command page_export_row() {
  return without_tables(
      {"page export",
       "Writes the page of finished runs as a folder that a browser opens from a disk.",
       "kernelmill page export report runs\n"
       "kernelmill page export report runs --run first --run second",
       "Open DIR/index.html. It needs no server and no network; filters and comparisons need "
       "one, and are left out.\n"
       "Episodes have what the page shows of them: prompts, completions and code. Exit code 4: "
       "DIR is not empty.",
       {{"DIR", "New or empty folder.", true, false, completes::directory, {}},
        {"ROOT",
         "Folder that holds the runs. Default: runs.",
         false,
         false,
         completes::directory,
         {}}},
       {{"--run",
         "NAME",
         "Only this run, by its folder; may be given again.",
         "",
         false,
         {},
         nothing,
         {},
         true}},
       page_export});
}

std::string page_api_text() {
  return page::openapi_text();
}

} // namespace kernelmill::commands
