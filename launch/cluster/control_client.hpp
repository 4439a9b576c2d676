#pragma once

#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "launch/cluster/link.hpp"
#include "messages/actors.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// Asks the head for one thing and returns its JSON. Errors are the head's own, or
/// "head_unreachable", "head_refused".
expected<nlohmann::ordered_json> ask_head(const network_address& head, const link_options& link,
                                          const std::string& verb, const std::string& subject,
                                          const std::string& document);

/// The same of a head that is known already, of this process or of another.
expected<nlohmann::ordered_json> ask_head_actor(caf::actor_system& system, const head_actor& head,
                                                const std::string& verb, const std::string& subject,
                                                const std::string& document);

/// The same for a caller that asks again and again, over one connection.
class head_line {
public:
  /// Errors: "head_unreachable", "head_refused".
  static expected<std::unique_ptr<head_line>> open(const network_address& head,
                                                   const link_options& link);
  ~head_line();

  expected<nlohmann::ordered_json> ask(const std::string& verb, const std::string& subject,
                                       const std::string& document);

private:
  struct state;
  explicit head_line(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
