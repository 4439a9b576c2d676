#include "launch/remote/far_server.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "launch/remote/far_session.hpp"
#include "launch/remote/frames.hpp"
#include "launch/remote/supervisor.hpp"
#include "messages/base/json_fields.hpp"
#include "storage/files.hpp"

namespace kernelmill::remote {

namespace {

constexpr int look_ms = 25;
constexpr auto beat_every = std::chrono::seconds{2};
constexpr int end_wait_ms = 10'000;

class server {
public:
  server(std::string root, std::string build, int in, int out)
      : root_(std::move(root)), build_(std::move(build)), in_(in), out_(out) {}

  expected<void> run() {
    while (true) {
      auto asked = receive(-1);
      KM_TRY(asked);
      if (!*asked) return {};
      auto done = answer(**asked);
      if (!done) KM_TRY(send(error_frame(done.error())));
    }
  }

private:
  expected<void> send(const frame& x) { return write_all(out_, encode(x), "the connection"); }

  // Nothing at the end of the connection, or when `wait_ms` passes; `ended_` tells which.
  expected<std::optional<frame>> receive(int wait_ms) {
    while (true) {
      auto next = reader_.next();
      if (!next || *next) return next;
      if (!wait_readable(in_, wait_ms)) return std::optional<frame>{};
      std::string part(most_piece, '\0');
      auto n = read_retrying(in_, part.data(), part.size());
      if (n <= 0) {
        ended_ = true;
        return std::optional<frame>{};
      }
      reader_.add({part.data(), static_cast<size_t>(n)});
    }
  }

  expected<void> answer(frame& x) {
    if (x.verb == "hello") return hello();
    if (x.verb == "sessions") return send({"sessions", {}, describe_sessions(root_).dump()});
    if (x.verb == "open") return open(x);
    if (x.verb == "use") return use(x);
    if (!session_) return broken_rules("it asked for something of no session");
    if (x.verb == "blob") return blob(x);
    if (x.verb == "start") return start();
    if (x.verb == "follow") return follow(x);
    if (x.verb == "list") return list();
    if (x.verb == "get") return get(x);
    if (x.verb == "close") return close();
    if (x.verb == "signal") return {}; // the command ended meanwhile
    return broken_rules("it asked for something that is not known here");
  }

  expected<void> hello() {
    KM_TRY(prepare_root(root_));
    utsname name{};
    ::uname(&name);
    return send(
        {"hello", {{"protocol", protocol_version}, {"build", build_}, {"host", name.nodename}}});
  }

  expected<void> open(frame& x) {
    auto opened = far_session::open(root_, text_in(x.head, "session"), x.payload);
    KM_TRY(opened);
    session_ = std::move(*opened);
    upload_fault_.reset();
    auto list = nlohmann::json::array();
    for (const auto& blob : session_->missing())
      list.push_back({{"sha256", blob.sha256}, {"size", blob.size}, {"have", blob.have}});
    return send({"missing", {}, list.dump()});
  }

  expected<void> use(frame& x) {
    auto found = far_session::find(root_, text_in(x.head, "session"));
    KM_TRY(found);
    session_ = std::move(*found);
    return send({"using", {{"state", std::string{to_string(session_->state())}}}});
  }

  // Pieces have no answer of their own: the first fault is told when the command is to start.
  expected<void> blob(frame& x) {
    if (upload_fault_) return {};
    auto stored = session_->add({text_in(x.head, "sha256"), 0, count_in(x.head, "offset", 0)},
                                x.payload, flag_in(x.head, "last", false));
    if (!stored) upload_fault_ = stored.error();
    return {};
  }

  expected<void> start() {
    if (upload_fault_) return tl::unexpected<error>{*upload_fault_};
    if (session_->state() == session_state::opened) {
      if (!session_->missing().empty()) return broken_rules("files of the session are missing");
      KM_TRY(session_->lay_out());
      KM_TRY(start_supervisor(session_->folder()));
    }
    return send({"started"});
  }

  // Sends what the log has behind `offset`; false when there is nothing.
  expected<bool> send_more(const char* stream, uint64_t& offset) {
    descriptor log{::open(session_->log(stream).c_str(), O_RDONLY | O_CLOEXEC)};
    std::string piece(most_piece / 4, '\0');
    auto n = log ? ::pread(log.get(), piece.data(), piece.size(), static_cast<off_t>(offset)) : 0;
    if (n <= 0) return false;
    piece.resize(static_cast<size_t>(n));
    KM_TRY(send({"data", {{"stream", stream}, {"offset", offset}}, std::move(piece)}));
    offset += static_cast<uint64_t>(n);
    return true;
  }

  expected<void> follow(frame& x) {
    auto out = count_in(x.head, "stdout", 0), err = count_in(x.head, "stderr", 0);
    auto beaten = std::chrono::steady_clock::now();
    while (true) {
      auto state = session_->state(); // before the logs are read: then they are whole
      auto first = send_more("stdout", out);
      KM_TRY(first);
      auto second = send_more("stderr", err);
      KM_TRY(second);
      if (*first || *second) continue;
      if (state != session_state::running) break;
      if (auto now = std::chrono::steady_clock::now(); now - beaten > beat_every) {
        KM_TRY(send({"beat"}));
        beaten = now;
      }
      auto asked = receive(look_ms);
      KM_TRY(asked);
      if (ended_) return {};
      if (*asked && (*asked)->verb == "signal") pass_on(**asked);
    }
    auto ended = session_->exit();
    KM_TRY(ended);
    return send({"ended", {{"code", ended->code}, {"signal", ended->signal}}});
  }

  void pass_on(const frame& x) {
    auto number = static_cast<int>(number_in(x.head, "number"));
    if (number != SIGINT && number != SIGTERM) return;
    if (int process = session_->process(); process > 0) ::kill(-process, number);
  }

  expected<void> list() {
    auto found = session_->outputs();
    KM_TRY(found);
    for (size_t i = 0; i < found->files.size(); ++i)
      outputs_[found->files[i].path] = std::move(found->sources[i]);
    return send({"files", {{"left_out", found->left_out}}, to_json(found->files).dump()});
  }

  expected<void> get(frame& x) {
    auto wanted = nlohmann::json::parse(x.payload, nullptr, false);
    if (!wanted.is_array()) return broken_rules("it asked for files without a list");
    for (const auto& one : wanted) {
      auto path = one.is_object() ? text_in(one, "path") : std::string{};
      auto at = outputs_.find(path);
      if (at == outputs_.end()) return broken_rules("it asked for a file that is not listed");
      KM_TRY(send_file(path, at->second, count_in(one, "offset", 0)));
    }
    return {};
  }

  expected<void> send_file(const std::string& path, const std::string& source, uint64_t offset) {
    descriptor in{::open(source.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!in) return tl::unexpected<error>{file_error(errno, "read", source)};
    bool last = false;
    while (!last) {
      std::string piece(most_piece, '\0');
      auto n = ::pread(in.get(), piece.data(), piece.size(), static_cast<off_t>(offset));
      if (n < 0) return tl::unexpected<error>{file_error(errno, "read", source)};
      piece.resize(static_cast<size_t>(n));
      last = piece.size() < most_piece;
      KM_TRY(
          send({"file", {{"path", path}, {"offset", offset}, {"last", last}}, std::move(piece)}));
      offset += static_cast<uint64_t>(n);
    }
    return {};
  }

  expected<void> close() {
    for (int number : {SIGTERM, SIGKILL})
      if (int process = session_->process(); process > 0) {
        ::kill(-process, number);
        for (int i = 0; i < end_wait_ms / look_ms && session_->process() > 0; ++i)
          ::poll(nullptr, 0, look_ms);
      }
    KM_TRY(session_->remove());
    session_.reset();
    return send({"closed"});
  }

  std::string root_;
  std::string build_;
  int in_, out_;
  bool ended_ = false;
  frame_reader reader_;
  std::optional<far_session> session_;
  std::optional<error> upload_fault_;
  std::map<std::string, std::string> outputs_; // where each listed path lies
};

} // namespace

expected<void> serve_near_end(const std::string& root, const std::string& build, int in, int out) {
  return server{root, build, in, out}.run();
}

} // namespace kernelmill::remote
