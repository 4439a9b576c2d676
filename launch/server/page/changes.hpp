#pragma once

// What readers may change: notes on verdicts, and with a token runs, nodes and policy servers.

#include <memory>
#include <string>

#include "launch/server/page/routes.hpp"

namespace kernelmill::page {

/// The handler of an operation that changes something; null for one that does not.
http::handler changing(const std::shared_ptr<page_state>& x, const std::string& operation);

} // namespace kernelmill::page
