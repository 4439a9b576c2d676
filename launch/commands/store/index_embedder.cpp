#include "launch/commands/store/index_embedder.hpp"

#include "launch/commands/options.hpp"
#include "launch/node/node_embedder.hpp"

namespace kernelmill::commands {

namespace {

bool is_typed(const cli::invocation& in) {
  for (const char* name : {"--embedder", "--base-url", "--model", "--dimension", "--api-key-env",
                           "--api-key-file", "--timeout-ms"})
    if (in.was_typed(name)) return true;
  return false;
}

} // namespace

cli::command with_embedder_options(cli::command x) {
  const cli::option_spec added[] = {
      {"--embedder",
       "KIND",
       "`hashed` needs no server; `http` asks /v1/embeddings.",
       "hashed",
       false,
       {"hashed", "http"},
       nothing},
      {"--base-url",
       "URL",
       "Address of the `http` kind, with its version path.",
       "",
       false,
       {},
       nothing},
      {"--model", "MODEL", "Model of the `http` kind.", "", false, {}, nothing},
      {"--dimension",
       "N",
       "Length of the vectors. 0: 1024 (`hashed`), or what the server answers.",
       "0",
       false,
       {},
       nothing},
      {"--api-key-env",
       "NAME",
       "Environment variable that holds the server's API key.",
       "",
       false,
       {},
       nothing},
      {"--api-key-file",
       "FILE",
       "File that holds the server's API key.",
       "",
       false,
       {},
       completes::file},
      {"--timeout-ms", "N", "Time for one request for embeddings.", "30000", false, {}, nothing}};
  x.options.insert(x.options.end(), std::begin(added), std::end(added));
  return x;
}

expected<std::shared_ptr<embedder>> embedder_of(const cli::invocation& in) {
  if (!is_typed(in)) return std::shared_ptr<embedder>{};
  embedder_section config;
  config.kind = in.value("--embedder");
  config.base_url = in.value("--base-url");
  config.model = in.value("--model");
  config.api_key_env = in.value("--api-key-env");
  config.api_key_file = in.value("--api-key-file");
  bool names_server = !config.base_url.empty() || !config.model.empty() ||
                      !config.api_key_env.empty() || !config.api_key_file.empty();
  if (config.kind == "hashed" && names_server)
    return configuration_error("bad_config",
                               "failed to use a server's options: the embedder `hashed` asks none",
                               "add --embedder http");
  auto dimension = in.integer("--dimension", 0, 32768);
  KM_TRY(dimension);
  if (config.kind == "hashed" && *dimension > 0 && *dimension < 64)
    return configuration_error("bad_config", "failed to use --dimension: it is below 64",
                               "give 64 or more, or leave it out: 1024");
  config.dimension = static_cast<uint32_t>(*dimension);
  auto timeout = in.integer("--timeout-ms", 1, 600'000);
  KM_TRY(timeout);
  config.timeout_ms = static_cast<uint32_t>(*timeout);
  return make_embedder(config);
}

} // namespace kernelmill::commands
