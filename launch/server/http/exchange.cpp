#include "launch/server/http/exchange.hpp"

#include "launch/server/http/exchange_state.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::http {

const std::string& request::header(const std::string& name) const {
  static const std::string none;
  auto i = headers.find(name);
  return i == headers.end() ? none : i->second;
}

response error_response(int status, const error& x) {
  nlohmann::ordered_json document;
  document["error"] = {{"class", std::string{to_string(x.cls)}},
                       {"category", x.category},
                       {"message", x.message},
                       {"hint", x.hint}};
  response result;
  result.status = status;
  result.body = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return result;
}

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 413: return "Payload Too Large";
    case 415: return "Unsupported Media Type";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    default: return "Other";
  }
}

// -- the shared state ---------------------------------------------------------------------------

void exchange::state::notify(std::unique_lock<std::mutex>& lock) {
  auto wake = std::move(wake_);
  wake_ = nullptr;
  lock.unlock();
  if (wake) wake();
}

void exchange::state::answer(response x) {
  std::unique_lock lock{mutex_};
  if (answered_) return;
  answered_ = whole_ = closed_ = true;
  head_ = std::move(x);
  notify(lock);
}

void exchange::state::open(response head) {
  std::unique_lock lock{mutex_};
  if (answered_) return;
  answered_ = true;
  head_ = std::move(head);
  notify(lock);
}

bool exchange::state::send(std::string piece) {
  std::unique_lock lock{mutex_};
  if (gone_ || closed_ || cut_ || !answered_) return false;
  bytes_ += piece.size();
  cut_ = bytes_ > most_bytes_;
  if (!cut_ && !piece.empty()) pieces_.push_back(std::move(piece));
  bool kept = !cut_;
  notify(lock);
  return kept;
}

void exchange::state::close() {
  std::unique_lock lock{mutex_};
  if (!answered_) return;
  closed_ = true;
  notify(lock);
}

void exchange::state::on_gone(std::function<void()> call) {
  {
    std::lock_guard lock{mutex_};
    if (finished_) return;
    if (!gone_) {
      on_gone_ = std::move(call);
      return;
    }
  }
  call();
}

bool exchange::state::gone() const {
  std::lock_guard lock{mutex_};
  return gone_;
}

bool exchange::state::answered() const {
  std::lock_guard lock{mutex_};
  return answered_;
}

size_t exchange::state::pending() const {
  std::lock_guard lock{mutex_};
  return bytes_;
}

bool exchange::state::ready() const {
  return head_ || cut_ || !pieces_.empty() || closed_;
}

exchange::state::step exchange::state::next() {
  std::lock_guard lock{mutex_};
  step result;
  result.head = std::move(head_);
  head_.reset();
  result.whole = whole_;
  result.pieces = std::move(pieces_);
  pieces_.clear();
  bytes_ = 0;
  result.end = closed_;
  result.cut = cut_;
  return result;
}

bool exchange::state::wake_by(std::function<void()> wake) {
  std::lock_guard lock{mutex_};
  if (ready()) return false;
  wake_ = std::move(wake);
  return true;
}

void exchange::state::on_text(std::function<void(std::string)> call) {
  std::lock_guard lock{mutex_};
  on_text_ = std::move(call);
}

void exchange::state::deliver(std::string text) {
  std::function<void(std::string)> call;
  {
    std::lock_guard lock{mutex_};
    call = on_text_;
  }
  if (call) call(std::move(text));
}

void exchange::state::finish() {
  std::lock_guard lock{mutex_};
  finished_ = true;
  on_gone_ = nullptr;
}

void exchange::state::leave() {
  std::function<void()> call;
  std::function<void(std::string)> heard;
  {
    std::lock_guard lock{mutex_};
    if (finished_ || gone_) return;
    gone_ = true;
    pieces_.clear();
    call = std::move(on_gone_);
    on_gone_ = nullptr;
    heard = std::move(on_text_); // what it holds may hold us
    on_text_ = nullptr;
  }
  if (call) call();
}

// -- the handler's handle -----------------------------------------------------------------------

exchange::exchange(std::shared_ptr<state> x) : state_(std::move(x)) {
  // nop
}

exchange::~exchange() {
  if (!state_->answered())
    state_->answer(error_response(500, {fault_class::infrastructure, "no_answer",
                                        "failed to answer: the request was dropped", ""}));
  else
    state_->close();
}

void exchange::answer(response x) {
  state_->answer(std::move(x));
}
void exchange::open(response head) {
  state_->open(std::move(head));
}
bool exchange::send(std::string piece) {
  return state_->send(std::move(piece));
}
void exchange::close() {
  state_->close();
}
void exchange::on_text(std::function<void(std::string)> call) {
  state_->on_text(std::move(call));
}
void exchange::on_gone(std::function<void()> call) {
  state_->on_gone(std::move(call));
}
size_t exchange::pending() const {
  return state_->pending();
}

bool exchange::gone() const {
  return state_->gone();
}

} // namespace kernelmill::http
