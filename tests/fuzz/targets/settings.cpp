// Files that an operator writes beside the configuration: clients and their tokens, keys of policy
// servers, licences, trainings.

#include <sys/stat.h>

#include "actors/governance/licences.hpp"
#include "actors/policy_client/policy_keys.hpp"
#include "launch/learning/training/train_config.hpp"
#include "launch/server/http/clients.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

void settings(std::string_view bytes) {
  auto path = scratch_folder() + "/settings.json";
  write_file(path, bytes);
  ::chmod(path.c_str(), 0600); // others may not read tokens
  auto clients = http::load_clients(path);
  check(clients);
  if (clients)
    for (const auto& x : *clients) promise(!x.name.empty() && x.token, "a client has a token");
  check(load_policy_keys(path));
  auto licence = parse_licence(std::string{bytes}, path);
  check(licence);
  promise(!licence || !licence->source.empty(), "a licence is one of a source");
  check(training::read_train_config(path, {}));
}

} // namespace kernelmill::fuzz
