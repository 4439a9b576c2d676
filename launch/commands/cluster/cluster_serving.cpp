// `kernelmill head` and `node`: the processes that a cluster consists of.

#include <cstdio>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/head.hpp"
#include "launch/cluster/member.hpp"
#include "launch/commands/head_asking.hpp"
#include "launch/commands/interrupt.hpp"
#include "launch/commands/monitoring.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/sources.hpp"
#include "launch/config/keys.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

[[noreturn]] void leave_with(const invocation& in, const error& why) {
  cli::print_error(why, in.json, in.colour_err);
  leave(cli::exit_code(why));
}

/// What a process that serves says of itself: to stderr, which with --json is left to a document,
/// and to --log-file.
expected<logger> open_server_log(const invocation& in, const std::string& level,
                                 const std::string& format) {
  log_options wanted;
  wanted.level = parse_log_level(level).value_or(log_level::info);
  wanted.format = format == "json" ? log_format::json : log_format::text;
  wanted.file = in.value("--log-file");
  wanted.show_all = true;
  if (!in.json) wanted.show = [](std::string_view line) { cli::talk(line); };
  return logger::open(std::move(wanted));
}

expected<int> head(const invocation& in) {
  auto listen = parse_head_address(in.value("--listen"));
  KM_TRY(listen);
  head_options options;
  options.listen = *listen;
  options.link = link_of(in);
  options.root = in.value("--root");
  auto web = monitor_options(in, "--monitor");
  KM_TRY(web);
  if (*web)
    options.on_window = [page = std::move(**web)](head_window window) {
      return open_head_page(page, std::move(window));
    };
  options.on_listening = [&](const network_address& at) {
    if (in.json)
      cli::print_json({{"address", at.text()}});
    else
      cli::print(at.text() + "\n");
    std::fflush(stdout);
    cli::talk("serving; press Ctrl-C to end it (its runs can be resumed)");
  };
  auto log = open_server_log(in, in.value("--log-level"), in.value("--log-format"));
  KM_TRY(log);
  options.log = *log;
  interrupt signals;
  auto ended = run_head(options, signals.token());
  log->close();
  if (!ended) leave_with(in, ended.error());
  leave(cli::exit_ok);
}

expected<int> node(const invocation& in) {
  auto address = head_of(in);
  KM_TRY(address);
  auto sources = sources_of(in.list("CONFIG"));
  // A node asks no policy server; a configuration that is for a run may name its own over these.
  sources.overrides.insert(sources.overrides.begin(),
                           {"policy.base_url=http://unused", "policy.model=unused"});
  auto loaded = load_config(sources);
  KM_TRY(loaded);
  member_options options;
  options.head = *address;
  options.link = link_of(in);
  options.name = in.value("--name");
  options.config = std::move(loaded->config);
  options.gpus = in.value("--gpus");
  options.architecture = in.value("--arch");
  if (in.has("--compilers")) {
    auto count = in.integer("--compilers", 1, 1024);
    KM_TRY(count);
    options.config.compile.slots = static_cast<uint32_t>(*count);
  }
  auto log = open_server_log(in, options.config.log.level, options.config.log.format);
  KM_TRY(log);
  options.log = *log;
  interrupt signals{true};
  auto ended = run_member(options, signals.token());
  log->close();
  if (!ended) leave_with(in, ended.error());
  leave(cli::exit_ok);
}

} // namespace

cli::command head_row() {
  return without_tables(
      {"head",
       "Starts the head of a cluster. It owns runs and distributes their work to nodes.",
       "kernelmill head --listen 10.0.0.1:7612\n"
       "kernelmill head --insecure-loopback --monitor 7700",
       "Prints its address once it listens. Links use mutual TLS with the credentials of "
       "`kernelmill cluster init`.\n"
       "With --monitor it serves the page of its runs and nodes, and prints its URL on stderr.\n"
       "Ctrl-C or SIGTERM ends it. The next head with the same --root continues the runs in "
       "progress, also after\n"
       "kill -9.",
       {},
       with_monitor_options({{"--listen",
                              "ADDR:PORT",
                              "Address to listen on. Port 0 takes a free one.",
                              "127.0.0.1:7612",
                              false,
                              {},
                              nothing},
                             {"--root",
                              "DIR",
                              "Folder that holds the runs.",
                              "runs",
                              false,
                              {},
                              completes::directory},
                             credentials(),
                             insecure(),
                             log_file(),
                             {"--log-level",
                              "LEVEL",
                              "Lowest level that is logged.",
                              "info",
                              false,
                              {"trace", "debug", "info", "warn", "error"},
                              nothing},
                             {"--log-format",
                              "FORMAT",
                              "`text`, or `json` with one object per line.",
                              "text",
                              false,
                              {"text", "json"},
                              nothing}}),
       head});
}

cli::command node_row() {
  auto configuration = config_words();
  configuration.required = false;
  return without_tables(
      {"node",
       "Offers this machine's compilers and GPUs to a head.",
       "kernelmill node --head 10.0.0.1:7612\n"
       "kernelmill node --head 10.0.0.1:7612 --gpus 0,2 --compilers 8\n"
       "kernelmill node --head 10.0.0.1:7612 --arch sm_90 --compilers 32",
       "Rejoins when the connection or the head is lost. SIGTERM, SIGUSR1 and Ctrl-C drain it: it "
       "takes no new jobs,\n"
       "finishes the current ones, and ends. A second signal ends it at once. It uses the "
       "sections `compile`,\n"
       "`evaluation` and `log` of the configuration.",
       {configuration},
       with_head_options({{"--name",
                           "NAME",
                           "Name of the node. Default: the host's name.",
                           "",
                           false,
                           {},
                           nothing},
                          {"--gpus",
                           "LIST",
                           "GPUs to offer: `all`, `none`, or numbers such as 0,2 among those in "
                           "CUDA_VISIBLE_DEVICES.",
                           "all",
                           false,
                           {},
                           nothing},
                          {"--arch",
                           "ARCH",
                           "Only compiles, for GPUs of this architecture (sm_90).",
                           "",
                           false,
                           {},
                           nothing},
                          {"--compilers",
                           "N",
                           "Concurrent builds. Default: one per core.",
                           "",
                           false,
                           {},
                           nothing},
                          log_file()}),
       node});
}

} // namespace kernelmill::commands
