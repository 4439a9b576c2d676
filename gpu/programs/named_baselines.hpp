#pragma once

// Baselines that a user names, or that a run verified: code like a candidate's. Each is judged as a
// candidate before anything is timed beside it.

#include <functional>
#include <set>
#include <string>

#include "messages/error.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

/// Thread safety: none.
class named_baselines {
public:
  using judging = std::function<Message<wire::EvaluateResult>(wire::EvaluateRequest::Reader)>;

  /// `folder` is for their products, by their contents.
  explicit named_baselines(std::string folder) : folder_(std::move(folder)) {}

  /// Returns the product's path, once the product was right in all cases of the request's task;
  /// empty where the request names no such baseline. Errors: "bad_baseline" of one that is not
  /// right, "io_error", and what fails of the machine.
  expected<std::string> admit(wire::EvaluateRequest::Reader request, const judging& judge);

private:
  std::string folder_;
  std::set<std::string> admitted_; ///< by product, task and rules
};

} // namespace kernelmill
