#include "launch/server/http/router.hpp"

#include <algorithm>
#include <cstring>

#include <kj/encoding.h>
#include <openssl/crypto.h>
#include <sys/stat.h>

#include "messages/base/text.hpp"

namespace kernelmill::http {

namespace {

response refuse(int status, std::string category, std::string message, std::string hint = {}) {
  return error_response(status, {fault_class::configuration, std::move(category),
                                 std::move(message), std::move(hint)});
}

/// Undoes percent-encoding; nothing for an encoding that is broken. `form`: '+' is a blank.
std::optional<std::string> decode(const std::string& x, bool form) {
  auto text = kj::ArrayPtr<const char>{x.data(), x.size()};
  auto result = form ? kj::decodeBinaryUriComponent(text, kj::DecodeUriOptions{false, true})
                     : kj::decodeBinaryUriComponent(text, kj::DecodeUriOptions{false, false});
  if (result.hadErrors) return std::nullopt;
  return std::string{reinterpret_cast<const char*>(result.begin()), result.size()};
}

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool is_name(const std::string& part) {
  return part.size() > 2 && part.front() == '{' && part.back() == '}';
}

/// Whether a path has the shape of a route; fills in the parts that the route names.
bool matches(const std::vector<std::string>& shape, const std::vector<std::string>& path,
             std::map<std::string, std::string>& parts) {
  if (shape.size() != path.size()) return false;
  parts.clear();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!is_name(shape[i])) {
      if (shape[i] != path[i]) return false;
      continue;
    }
    auto value = decode(path[i], false);
    if (!value || value->empty()) return false;
    parts[shape[i].substr(1, shape[i].size() - 2)] = std::move(*value);
  }
  return true;
}

std::optional<response> read_query(const route& to, request& x, const std::string& text) {
  for (const auto& pair : split(text, '&')) {
    if (pair.empty()) continue;
    auto equals = std::min(pair.find('='), pair.size());
    auto name = decode(pair.substr(0, equals), true);
    auto value = decode(equals < pair.size() ? pair.substr(equals + 1) : "", true);
    if (!name || !value)
      return refuse(400, "bad_query",
                    "failed to read the query: \"" + pair + "\" is badly encoded");
    if (!to.query.contains(*name))
      return refuse(400, "unknown_parameter", "unknown query parameter \"" + *name + "\"",
                    to.query.empty() ? to.path + " takes none"
                                     : to.path + " takes " + joined(to.query));
    if (!x.query.emplace(*name, std::move(*value)).second)
      return refuse(400, "bad_query", "the query parameter \"" + *name + "\" is given twice");
  }
  return std::nullopt;
}

} // namespace

bool changes_state(const std::string& method) {
  return method != "GET" && method != "HEAD" && method != "OPTIONS";
}

std::string host_of(const std::string& authority) {
  if (authority.starts_with("[")) {
    auto end = authority.find(']');
    return lowered(end == authority.npos ? authority : authority.substr(1, end - 1));
  }
  return lowered(authority.substr(0, authority.rfind(':')));
}

router::router(std::vector<route> routes, access allowed)
    : routes_(std::move(routes)), access_(std::move(allowed)) {
  // nop
}

const route* router::find(request& x, std::set<std::string>& methods) const {
  auto path = split(x.path, '/');
  auto wanted = x.method == "HEAD" ? std::string{"GET"} : x.method;
  const route* result = nullptr;
  for (const auto& one : routes_) {
    std::map<std::string, std::string> parts;
    if (!matches(split(one.path, '/'), path, parts)) continue;
    methods.insert(one.method);
    // A route of plain words goes before one with names: /tasks/all before /tasks/{id}.
    if (one.method != wanted || (result != nullptr && !parts.empty())) continue;
    result = &one;
    x.parts = std::move(parts);
  }
  return result;
}

std::optional<response> router::check_access(const route& to, request& x) const {
  bool changes = changes_state(x.method) || to.socket;
  // A page of another site can make a browser ask, and a name can be made to point here: neither
  // may change anything.
  if (auto host = host_of(x.header("host"));
      (changes || access_.guard_reads) && !access_.hosts.empty() && !access_.hosts.contains(host))
    return refuse(421, "wrong_host", "this server is not called \"" + host + "\"",
                  "it answers to " + joined(access_.hosts));
  if (changes) {
    // Browsers tell where a request comes from; "none" is the user's own doing.
    const auto& site = x.header("sec-fetch-site");
    if (!site.empty() && site != "same-origin" && site != "none")
      return refuse(403, "wrong_origin", "a page of another site may change nothing here");
    const auto& origin = x.header("origin");
    auto scheme = origin.find("://");
    if (!origin.empty() &&
        (scheme == origin.npos || lowered(origin.substr(scheme + 3)) != lowered(x.header("host"))))
      return refuse(403, "wrong_origin", "a page of \"" + origin + "\" may change nothing here");
  }
  if (to.open || (access_.token == nullptr && access_.clients == nullptr)) return std::nullopt;
  if (access_.clients) {
    x.client_number = access_.clients->find(x.header("authorization"));
    if (x.client_number) {
      x.client = access_.clients->rules(*x.client_number).name;
      return std::nullopt;
    }
  } else if (same(x.header("authorization"), "Bearer " + std::string{access_.token->reveal()}))
    return std::nullopt;
  auto result =
      refuse(401, "unauthorized",
             x.header("authorization").empty() ? "a token is needed" : "the token is wrong",
             "send the header Authorization: Bearer TOKEN");
  result.headers.emplace_back("WWW-Authenticate", "Bearer");
  return result;
}

std::variant<const route*, response> router::choose(request& x, const std::string& target) const {
  auto mark = std::min(target.find('?'), target.size());
  x.path = target.substr(0, mark);
  std::set<std::string> methods;
  const auto* to = find(x, methods);
  if (methods.empty()) return refuse(404, "not_found", "there is no " + x.path + " here");
  if (to == nullptr) {
    auto result =
        refuse(405, "wrong_method", x.path + " takes " + joined(methods) + ", not " + x.method);
    result.headers.emplace_back("Allow", joined(methods));
    return result;
  }
  if (auto no = check_access(*to, x)) return std::move(*no);
  if (to->socket && lowered(x.header("upgrade")) != "websocket")
    return refuse(426, "no_websocket", x.path + " is a WebSocket",
                  "ask by ws://, or with the headers of RFC 6455");
  if (x.method == "POST" && !lowered(x.header("content-type")).starts_with("application/json"))
    return refuse(415, "wrong_content_type", "the body must be JSON",
                  "send the header Content-Type: application/json");
  if (auto no = read_query(*to, x, mark < target.size() ? target.substr(mark + 1) : ""))
    return std::move(*no);
  return to;
}

expected<secret_ptr> load_token(const std::string& path) {
  auto fail = [&](const char* category, const std::string& cause) {
    return configuration_error(category, "failed to use the token file " + path + ": " + cause,
                               "write one: (umask 077; openssl rand -hex 32 > " + path + ")");
  };
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return fail("token_missing", std::strerror(errno));
  if (!S_ISREG(about.st_mode)) return fail("token_missing", "it is no file");
  if ((about.st_mode & S_IRWXO) != 0)
    return fail("token_exposed", "every user of this machine may read it");
  auto result = load_secret({}, path);
  if (!result) return fail("token_malformed", "it must hold one line, the token");
  if ((*result)->reveal().size() < shortest_token)
    return fail("token_malformed", "its token has fewer than " + std::to_string(shortest_token) +
                                       " characters and could be guessed");
  return *result;
}

} // namespace kernelmill::http
