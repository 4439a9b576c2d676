#include <caf/config.hpp>
#include <capnp/common.h>
#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/json_value.hpp"
#include "messages/envelope.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::commands {

namespace {

expected<int> version(const invocation& in) {
  auto caf =
      fmt::format("{}.{}.{}", CAF_VERSION / 10000, CAF_VERSION / 100 % 100, CAF_VERSION % 100);
  auto capnp =
      fmt::format("{}.{}.{}", CAPNP_VERSION_MAJOR, CAPNP_VERSION_MINOR, CAPNP_VERSION_MICRO);
  nlohmann::ordered_json document = {
      {"version", KERNELMILL_VERSION},
      {"git", KERNELMILL_GIT},
      {"protocol", protocol_version},
      {"store_schema", store_schema_version},
      {"compiler", KERNELMILL_COMPILER},
      {"libraries",
       {{"caf", caf}, {"capnp", capnp}, {"lmdb", KERNELMILL_LMDB}, {"faiss", KERNELMILL_FAISS}}},
  };
  if (in.json) {
    cli::print_json(document);
    return 0;
  }
  cli::print(fmt::format("kernelmill {} ({})\nprotocol {}, store schema {}\nCAF {}, Cap'n Proto "
                         "{}, LMDB {}, FAISS {}\n",
                         KERNELMILL_VERSION, KERNELMILL_GIT, protocol_version, store_schema_version,
                         caf, capnp, KERNELMILL_LMDB, KERNELMILL_FAISS));
  return 0;
}

} // namespace

cli::command version_row() {
  return without_tables({"version",
                         "Prints the versions of the program, its formats and its libraries.",
                         "kernelmill version --json",
                         "",
                         {},
                         {},
                         version});
}

} // namespace kernelmill::commands
