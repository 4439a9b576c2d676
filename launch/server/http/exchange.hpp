#pragma once

// One request and the answer to it, as handlers see them. A handler runs on the server's thread and
// must not block; it keeps the exchange, and any thread may answer later.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill::http {

struct request {
  std::string method;                         ///< "GET", "POST", "DELETE"
  std::string path;                           ///< without the query, as it was sent
  std::map<std::string, std::string> parts;   ///< of the path, by their names in the route; decoded
  std::map<std::string, std::string> query;   ///< decoded; only those that the route names
  std::map<std::string, std::string> headers; ///< names in lower case
  std::string body;
  std::string client = {};                  ///< with its token; "": all have one, or none
  std::optional<size_t> client_number = {}; ///< in the server's list of clients

  /// The value of a header, or "".
  const std::string& header(const std::string& name) const;
};

struct response {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {}; ///< besides type and length
};

/// {"error": {"class", "category", "message", "hint"}}: the document that commands print too.
response error_response(int status, const error& x);

/// The standard reason of a status, such as "Not Found".
const char* reason_of(int status);

/// The right to answer one request. Every member may be called from any thread. Destroying it
/// without an answer answers 500.
class exchange {
public:
  class state;
  explicit exchange(std::shared_ptr<state> x);
  ~exchange();
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;

  /// Answers whole. Only the first answer or open() counts.
  void answer(response x);

  /// Answers piece by piece, for server-sent events and other streams; then send() and close().
  void open(response head);
  /// Adds a piece. False when there is no reader any more: the client has gone, or lags by more
  /// than `limits::stream_bytes`, for which its connection is cut.
  bool send(std::string piece);
  void close();
  /// Bytes of pieces that the connection has yet to take: what a stream that would rather drop than
  /// be cut looks at.
  size_t pending() const;

  /// Of a socket's route: called on the server's thread with each message of the client, in order,
  /// from the handler's return on. A piece that is sent is one message to the client.
  void on_text(std::function<void(std::string)> call);

  /// Called once, on the server's thread, if the client leaves before it has its answer; at once
  /// if it has left already. Never after an answer has been sent whole.
  void on_gone(std::function<void()> call);
  bool gone() const;

private:
  std::shared_ptr<state> state_;
};

using exchange_ptr = std::shared_ptr<exchange>;
using handler = std::function<void(request, exchange_ptr)>;

} // namespace kernelmill::http
