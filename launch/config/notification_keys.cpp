// The keys of hooks.*, trackers.* and otlp.*: where a run sends notifications, metrics and traces.

#include "launch/config/key_builders.hpp"

namespace kernelmill {

using namespace key_builders;

void add_notification_keys(std::vector<config_key>& k) {
  k.push_back(url(KEY(hooks.url, "Address that events are sent to, as JSON by POST.")));
  k.push_back(variable_name(KEY(hooks.url_env, "Name of the environment variable that holds the "
                                               "address, where the address is a secret.")));
  k.push_back(KEY(hooks.command, "Program and its arguments that are started for each event, with "
                                 "the event as JSON on standard input."));
  k.push_back(variable_name(KEY(hooks.token_env, "Name of the environment variable that holds the "
                                                 "bearer token for `hooks.url`.")));
  k.push_back(file(KEY(hooks.token_file, "File that holds the bearer token.")));
  k.push_back(KEY(hooks.on, "Events that are sent: `*` for all, or some of run_ended, no_progress, "
                            "infrastructure_faults, integrity_findings, node_lost."));
  k.push_back(within(KEY(hooks.no_progress_minutes,
                         "Minutes without a committed turn after which `no_progress` is sent; 0: "
                         "never."),
                     0, 10080));
  k.push_back(within(KEY(hooks.infrastructure_share,
                         "Share of the turns lost to the infrastructure above which "
                         "`infrastructure_faults` is sent, after 32 turns; 0: never."),
                     0, 1));
  k.push_back(
      within(KEY(hooks.findings_share, "Share of the turns with integrity violations above which "
                                       "`integrity_findings` is sent, after 32 turns; 0: never."),
             0, 1));
  k.push_back(within(KEY(hooks.timeout_ms, "Time for one event. At its end a run waits for its "
                                           "hooks once for so long."),
                     100, 600e3));
  k.push_back(KEY(trackers.tensorboard, "Write TensorBoard event files to tensorboard/ of the "
                                        "run's directory."));
  k.push_back(url(KEY(otlp.endpoint,
                      "Address of an OpenTelemetry collector that takes OTLP over HTTP; traces go "
                      "to /v1/traces of it. Empty: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, then "
                      "OTEL_EXPORTER_OTLP_ENDPOINT; when neither is set, nothing is sent.")));
  k.push_back(variable_name(KEY(otlp.headers_env,
                                "Name of the environment variable that holds the headers of each "
                                "request, `name=value,name=value`. Empty: "
                                "OTEL_EXPORTER_OTLP_TRACES_HEADERS, then "
                                "OTEL_EXPORTER_OTLP_HEADERS.")));
  k.push_back(KEY(otlp.service, "Name of the service in traces. Empty: OTEL_SERVICE_NAME, then "
                                "kernelmill."));
  k.push_back(KEY(otlp.content, "Send the texts of prompts, completions, compiler logs and "
                                "feedback too."));
  k.push_back(within(KEY(otlp.share, "Share of the episodes that have a trace."), 0, 1));
  k.push_back(within(KEY(otlp.timeout_ms, "Time for one request. At its end a run waits for its "
                                          "collector once for so long."),
                     100, 600e3));
}

} // namespace kernelmill
