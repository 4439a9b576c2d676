// The server against clients that do what they like. Nothing here waits but for the event itself.

#include "launch/server/http/server.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/unit/http/talk.hpp"

namespace kernelmill::http {

namespace server_test {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Exchanges that a handler has kept, for the test to answer.
class shelf {
public:
  void put(exchange_ptr x) {
    std::lock_guard lock{mutex_};
    kept_.push_back(std::move(x));
    changed_.notify_all();
  }
  exchange_ptr take() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return !kept_.empty(); });
    auto result = std::move(kept_.front());
    kept_.erase(kept_.begin());
    return result;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<exchange_ptr> kept_;
};

class a_gate {
public:
  void open() {
    std::lock_guard lock{mutex_};
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return open_; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class HttpServer : public testing::Test {
protected:
  void start(limits bounds = {}) {
    server_options options;
    options.bounds = bounds;
    std::vector<route> routes;
    routes.push_back({"GET", "/echo/{word}", {"x"}, [](request r, exchange_ptr to) {
                        to->answer({200, "text/plain", r.parts["word"] + r.query["x"]});
                      }});
    routes.push_back({"POST", "/size", {}, [](request r, exchange_ptr to) {
                        to->answer({200, "text/plain", std::to_string(r.body.size())});
                      }});
    routes.push_back(
        {"GET", "/later", {}, [this](request, exchange_ptr to) { kept.put(std::move(to)); }});
    routes.push_back(
        {"POST", "/later", {}, [this](request, exchange_ptr to) { kept.put(std::move(to)); }});
    routes.push_back({"GET", "/dropped", {}, [](request, exchange_ptr) {}});
    auto made = server::start(std::move(routes), options);
    ASSERT_TRUE(made) << made.error().message;
    http = std::move(*made);
    port = http->port();
  }

  shelf kept;
  std::unique_ptr<server> http;
  uint16_t port = 0;
};

constexpr const char* post_size = "POST /size HTTP/1.1\r\nContent-Type: application/json";

TEST_F(HttpServer, AnswersAndKeepsTheConnection) {
  start();
  talker x{port};
  for (int i = 0; i < 3; ++i) {
    x.say("GET /echo/a%20b?x=c HTTP/1.1\r\nHost: localhost\r\n\r\n");
    auto heard = x.hear("a bc");
    EXPECT_THAT(heard, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(heard, HasSubstr("X-Content-Type-Options: nosniff"));
  }
  EXPECT_THAT(ask(port, "HEAD /echo/a HTTP/1.1"), EndsWith("\r\n\r\n"));
  EXPECT_THAT(ask(port, "GET /dropped HTTP/1.1"), HasSubstr("500 Internal Server Error"));
  EXPECT_THAT(ask(port, "GET /nowhere HTTP/1.1"), HasSubstr("404 Not Found"));
}

TEST_F(HttpServer, AnswersFromAnotherThread) {
  start();
  talker x{port};
  x.say("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::jthread{[&] { kept.take()->answer({202, "text/plain", "from afar"}); }};
  EXPECT_THAT(x.hear("from afar"), StartsWith("HTTP/1.1 202 Accepted"));
}

TEST_F(HttpServer, StreamsPieceByPiece) {
  start();
  talker x{port};
  x.say("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto to = kept.take();
  to->open({200, "text/event-stream", ""});
  EXPECT_TRUE(to->send("data: one\n\n"));
  EXPECT_THAT(x.hear("one"), HasSubstr("text/event-stream")) << "before the next piece is there";
  EXPECT_TRUE(to->send("data: two\n\n"));
  x.hear("two");
  to->close();
  EXPECT_THAT(x.hear("0\r\n\r\n"), EndsWith("0\r\n\r\n"));
  EXPECT_FALSE(to->send("late"));
}

TEST_F(HttpServer, CutsAStreamWhoseReaderLags) {
  limits bounds;
  bounds.stream_bytes = 1000;
  start(bounds);
  talker x{port};
  x.say("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto to = kept.take();
  to->open({200, "text/event-stream", ""});
  EXPECT_FALSE(to->send(std::string(1001, 'x')));
  x.hear(); // ends: the connection is closed
}

TEST_F(HttpServer, TellsAHandlerThatItsClientHasLeft) {
  start();
  for (const char* method : {"GET", "POST"}) {
    talker x{port};
    x.say(std::string{method} + " /later HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
          (*method == 'P' ? "2\r\nContent-Type: application/json\r\n\r\n{}" : "0\r\n\r\n"));
    auto to = kept.take();
    a_gate left;
    to->on_gone([&] { left.open(); });
    EXPECT_FALSE(to->gone());
    x.leave();
    left.wait();
    EXPECT_TRUE(to->gone());
  }
}

TEST_F(HttpServer, AnsweredIsNotGone) {
  start();
  talker x{port};
  x.say("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto to = kept.take();
  bool left = false;
  to->on_gone([&] { left = true; });
  to->answer({200, "text/plain", "done"});
  x.hear("done");
  x.leave();
  http.reset();
  EXPECT_FALSE(left);
}

TEST_F(HttpServer, WhenItStopsAllWaitingClientsAreGone) {
  start();
  talker x{port};
  x.say("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto to = kept.take();
  bool left = false;
  to->on_gone([&] { left = true; });
  http.reset();
  EXPECT_TRUE(left);
  to->answer({200, "text/plain", "to no client"});
}

TEST_F(HttpServer, RefusesABodyThatIsTooLarge) {
  limits bounds;
  bounds.body_bytes = 1000;
  start(bounds);
  EXPECT_THAT(ask(port, post_size, std::string(1000, 'x')), EndsWith("\r\n\r\n1000"));
  EXPECT_THAT(ask(port, post_size, std::string(1001, 'x')), HasSubstr("413 Payload Too Large"));
  talker x{port};
  x.say(std::string{post_size} + "\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 3; ++i) x.say("190\r\n" + std::string(400, 'x') + "\r\n");
  EXPECT_THAT(x.hear("\r\n\r\n"), HasSubstr("413 Payload Too Large"));
}

TEST_F(HttpServer, RefusesBodiesThatAreTooLargeTogether) {
  limits bounds;
  bounds.bodies_bytes = 1000;
  start(bounds);
  talker half{port};
  half.say(std::string{post_size} + "\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\n" +
           std::string(1500, 'x'));
  EXPECT_THAT(half.hear("\r\n\r\n"), HasSubstr("429 Too Many Requests"));
  EXPECT_THAT(ask(port, post_size, std::string(900, 'x')), EndsWith("\r\n\r\n900"))
      << "what was refused is held no longer";
}

TEST_F(HttpServer, RefusesHeadersThatAreTooLarge) {
  start();
  talker x{port};
  x.say("GET /echo/a HTTP/1.1\r\nX-Long: " + std::string(32 << 10, 'x'));
  EXPECT_THAT(x.hear("}}"), HasSubstr("HTTP/1.1 431"));
  EXPECT_THAT(ask(port, "GET /echo/a HTTP/1.1"), EndsWith("\r\n\r\na"));
}

TEST_F(HttpServer, ClientsThatStopInTheHeadAreNotWaitedFor) {
  limits bounds;
  bounds.header_time = 50ms;
  start(bounds);
  talker head{port};
  head.say("GET /echo/a HTT");
  EXPECT_THAT(head.hear(), testing::AnyOf("", HasSubstr("408 Request Timeout")));
}

// Their heads have all the time that there is: on a busy machine a client is slow to begin.
TEST_F(HttpServer, ClientsThatStopAfterTheHeadAreNotWaitedFor) {
  limits bounds;
  bounds.body_time = bounds.idle_time = 50ms;
  start(bounds);
  talker body{port}, idle{port};
  body.say(std::string{post_size} + "\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf");
  idle.say("GET /echo/a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(body.hear(), HasSubstr("408 Request Timeout"));
  EXPECT_THAT(idle.hear(), EndsWith("\r\n\r\na"));
}

TEST_F(HttpServer, AClientThatDoesNotReadIsCut) {
  limits bounds;
  bounds.write_time = 50ms;
  start(bounds);
  talker x{port};
  x.say("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto to = kept.take();
  a_gate left;
  to->on_gone([&] { left.open(); });
  to->answer({200, "text/plain", std::string(64 << 20, 'x')}); // more than sockets hold
  left.wait();
}

TEST_F(HttpServer, RefusesConnectionsAboveItsNumber) {
  limits bounds;
  bounds.connections = 2;
  start(bounds);
  talker a{port}, b{port};
  for (auto* x : {&a, &b}) {
    x->say("GET /echo/a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    x->hear("\r\n\r\na");
  }
  EXPECT_EQ(http->connections(), 2u);
  EXPECT_THAT(ask(port, "GET /echo/a HTTP/1.1"), HasSubstr("too many connections"));
  a.leave();
  while (http->connections() > 1) std::this_thread::yield();
  EXPECT_THAT(ask(port, "GET /echo/a HTTP/1.1"), EndsWith("\r\n\r\na"));
}

TEST_F(HttpServer, SilentConnectionsMakeRoomForRequests) {
  limits bounds;
  bounds.connections = 3;
  bounds.header_time = 3600s;
  start(bounds);
  talker let_in{port};
  let_in.say("GET /echo/a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  let_in.hear("\r\n\r\na");
  std::vector<std::unique_ptr<talker>> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(std::make_unique<talker>(port));
  EXPECT_EQ(silent.front()->hear(), "") << "the oldest was closed";
  EXPECT_THAT(ask(port, "GET /echo/b HTTP/1.1"), EndsWith("\r\n\r\nb"));
  let_in.say("GET /echo/c HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(let_in.hear("\r\n\r\nc"), EndsWith("\r\n\r\nc"));
}

// What stands behind a body that is framed twice would be a request of its own to one reader.
TEST_F(HttpServer, RefusesARequestThatCanBeReadInTwoWays) {
  start();
  for (const char* head :
       {"Content-Length: 2\r\nTransfer-Encoding: chunked", "Content-Length: +2",
        "Content-Length: 2\r\nContent-Length: 2", "Content-Length : 2", "X: a\r\n b: c"}) {
    talker x{port};
    x.say(std::string{post_size} + "\r\nHost: localhost\r\n" + head +
          "\r\n\r\n{}GET /echo/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(x.hear(), AllOf(StartsWith("HTTP/1.1 400"), Not(HasSubstr("hidden")))) << head;
  }
}

TEST_F(HttpServer, RequestsThatComeInARowAreEachLookedAt) {
  start();
  std::string good = "GET /echo/a HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::string posted =
      std::string{post_size} + "\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
  talker x{port};
  x.say(posted + good + posted + good + "GET /echo/b HTTP/1.1\n\n" + good);
  auto heard = x.hear();
  EXPECT_THAT(heard, HasSubstr("HTTP/1.1 400"));
  size_t answers = 0;
  for (size_t at = 0; (at = heard.find("HTTP/1.1 ", at)) != heard.npos; ++at) ++answers;
  EXPECT_EQ(answers, 5u) << heard;
}

TEST_F(HttpServer, AChunkedBodyEndsItsConnection) {
  start();
  talker x{port};
  x.say(std::string{post_size} +
        "\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
        "GET /echo/b HTTP/1.1\n\n");
  EXPECT_THAT(x.hear(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\n2")));
}

TEST_F(HttpServer, GarbageIsAnswered) {
  start();
  talker x{port};
  x.say("\x16\x03\x01 what\r\n\r\n");
  EXPECT_THAT(x.hear(), StartsWith("HTTP/1.1 400 Bad Request"));
}

TEST_F(HttpServer, RefusesABodyThatIsNotEncodedAsItsHeadSays) {
  start();
  talker x{port};
  x.say(std::string{post_size} + "\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
        "2\r\n{}\f0\r\n\r\nnot a request");
  EXPECT_THAT(x.hear(), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("bad_request")))
      << "and the connection is closed: it is unknown where the next request begins";
}

TEST_F(HttpServer, RefusesALengthThatIsNoNumber) {
  start();
  talker x{port};
  x.say(std::string{post_size} + "\r\nHost: localhost\r\nContent-Length: two\r\n\r\n{}");
  EXPECT_THAT(x.hear(), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("bad_request")));
}

TEST(HttpServerStart, RefusesWhatItCannotOrMustNotDo) {
  server_options options;
  options.host = "0.0.0.0";
  auto open = server::start({}, options);
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().category, "token_missing");
  options.host = "127.0.0.1";
  auto first = server::start({}, options);
  ASSERT_TRUE(first);
  options.port = (*first)->port();
  auto second = server::start({}, options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().category, "address_in_use");
}

} // namespace server_test

} // namespace kernelmill::http
