// The keys of hooks.*: whom a run tells what happens to it.

#include "launch/config/key_builders.hpp"

namespace kernelmill {

using namespace key_builders;

void add_telling_keys(std::vector<config_key>& k) {
  k.push_back(url(KEY(hooks.url, "Address that events are sent to, as JSON by POST.")));
  k.push_back(variable_name(KEY(hooks.url_env, "Name of the environment variable that holds the "
                                               "address, where the address is a secret.")));
  k.push_back(KEY(hooks.command, "Program and its arguments that are started for each event, with "
                                 "the event as JSON on standard input."));
  k.push_back(variable_name(KEY(hooks.token_env, "Name of the environment variable that holds the "
                                                 "bearer token for `hooks.url`.")));
  k.push_back(file(KEY(hooks.token_file, "File that holds the bearer token.")));
  k.push_back(KEY(hooks.on, "Events that are told: `*` for all, or some of run_ended, no_progress, "
                            "infrastructure_faults, integrity_findings, node_lost."));
  k.push_back(within(KEY(hooks.no_progress_minutes,
                         "Minutes without a committed turn after which `no_progress` is told; 0: "
                         "never."),
                     0, 10080));
  k.push_back(within(KEY(hooks.infrastructure_share,
                         "Share of the turns lost to the infrastructure above which "
                         "`infrastructure_faults` is told, after 32 turns; 0: never."),
                     0, 1));
  k.push_back(
      within(KEY(hooks.findings_share, "Share of the turns with integrity findings above which "
                                       "`integrity_findings` is told, after 32 turns; 0: never."),
             0, 1));
  k.push_back(within(KEY(hooks.timeout_ms, "Time for one event. At its end a run waits for its "
                                           "hooks once for so long."),
                     100, 600e3));
}

} // namespace kernelmill
