#pragma once

// How the page's routes answer: documents, refusals, and the headers that all of them carry.

#include <string>

#include "launch/analysis/watch/world.hpp"
#include "launch/server/http/exchange.hpp"

namespace kernelmill::page {

http::response document(const watch::json& x, int status = 200);

/// The refusal of an error, with the status that its category and class stand for.
http::response refusal(const error& x);
http::response refusal(int status, const char* category, std::string message, std::string hint);

/// Headers of every answer: what a browser may load, and which pages may frame it.
void harden(http::response& x);

/// A named part of the path; empty where the route does not have it.
std::string part(const http::request& r, const char* name);

} // namespace kernelmill::page
