#include "launch/commands/head_asking.hpp"

#include <cstdlib>

#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

using json = nlohmann::ordered_json;

link_options link_of(const invocation& in) {
  return {in.value("--credentials"), in.has("--insecure-loopback")};
}

bool asks_head(const invocation& in) {
  const auto* value = std::getenv("KERNELMILL_HEAD");
  return in.has("--head") || (value != nullptr && *value != '\0' && !in.was_typed("--root"));
}

expected<network_address> head_of(const invocation& in) {
  auto text = in.value("--head");
  if (text.empty())
    if (const auto* value = std::getenv("KERNELMILL_HEAD")) text = value;
  return parse_head_address(text.empty() ? "127.0.0.1" : text);
}

expected<json> ask(const invocation& in, const std::string& verb, const std::string& subject,
                   const std::string& document) {
  auto head = head_of(in);
  KM_TRY(head);
  return ask_head(*head, link_of(in), verb, subject, document);
}

std::string count_of(const json& x, const char* key) {
  return std::to_string(x.value(key, int64_t{0}));
}

} // namespace kernelmill::commands
