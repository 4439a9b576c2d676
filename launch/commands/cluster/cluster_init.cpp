#include <string>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/certificates.hpp"
#include "launch/cluster/credentials.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using nlohmann::ordered_json;

const ordered_json next_steps = {
    "kernelmill head --listen ADDRESS:7612",
    "kernelmill node --head ADDRESS:7612",
    "kernelmill submit quickstart --head ADDRESS:7612 --wait",
};

void explain(const cluster_credentials& made, const std::string& expires) {
  cli::talk("made a certificate authority and one certificate, valid until " + expires);
  cli::talk("copy to every other machine, as files that only their owner may read:");
  for (const auto& file : {made.ca, made.certificate, made.key}) cli::talk("  " + file);
  cli::talk("do not copy ca.key: it can create new members; keep it offline, or delete it");
  cli::talk(
      "on each machine, give their directory with --credentials or KERNELMILL_CREDENTIALS; then");
  for (const auto& step : next_steps) cli::talk("  " + step.get<std::string>());
}

expected<int> cluster_init(const invocation& in) {
  auto directory = in.value("--dir");
  if (directory.empty()) directory = default_credentials_directory();
  auto made = make_credentials(directory);
  KM_TRY(made);
  // Read again as every node will, so that a problem shows now.
  auto found = find_credentials(made->directory);
  KM_TRY(found);
  auto authority = certificates::read_certificate(found->ca);
  auto node = certificates::read_certificate(found->certificate);
  KM_TRY(authority);
  KM_TRY(node);
  auto expires = certificates::day(X509_get0_notAfter(node->get()));
  if (in.json) {
    cli::print_json({{"directory", found->directory},
                     {"ca_sha256", certificates::fingerprint(authority->get())},
                     {"ca_expires", certificates::day(X509_get0_notAfter(authority->get()))},
                     {"certificate_expires", expires},
                     {"copy", {found->ca, found->certificate, found->key}},
                     {"keep", {found->directory + "/ca.key"}},
                     {"next", next_steps}});
  } else {
    cli::print(found->directory + "\n");
    explain(*found, expires);
  }
  return cli::exit_ok;
}

} // namespace

cli::command cluster_init_row() {
  return without_tables(
      {"cluster init",
       "Creates the cluster's credentials: a CA, a certificate and a key.",
       "kernelmill cluster init\n"
       "kernelmill cluster init --dir credentials",
       "Run it once per cluster, then copy ca.pem, node.pem and node.key to every machine. A "
       "machine that has the key\n"
       "can join the cluster. Do not copy ca.key. Exit code 4 when credentials exist already. "
       "Prints the directory on\n"
       "stdout.",
       {},
       {{"--dir",
         "DIR",
         "Directory to write to. Default: $KERNELMILL_CREDENTIALS, then "
         "$XDG_STATE_HOME/kernelmill/cluster, then ~/.local/state/kernelmill/cluster.",
         "",
         false,
         {},
         completes::directory}},
       cluster_init});
}

} // namespace kernelmill::commands
