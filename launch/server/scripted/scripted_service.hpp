#pragma once

// The HTTP side of the scripted server: routes, and the ways in which an answer can go wrong.

#include <atomic>
#include <functional>
#include <map>

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/timer.h>

#include "actors/policy_client/http/secret.hpp"
#include "launch/server/scripted/scripted_kinds.hpp"
#include "launch/server/scripted/scripted_server.hpp"

namespace kernelmill {

struct scripted_counters {
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> faults{0};
  std::atomic<uint64_t> in_flight{0};
  std::atomic<uint64_t> peak{0}; ///< of `in_flight`, since it was last taken
  std::atomic<uint64_t> tokens{0};
};

struct scripted_headers {
  explicit scripted_headers(kj::HttpHeaderTable::Builder& builder)
      : session(builder.add("X-Session-ID")), request_id(builder.add("X-Request-Id")),
        authorization(builder.add("Authorization")), retry_after(builder.add("Retry-After")) {}
  kj::HttpHeaderId session;
  kj::HttpHeaderId request_id;
  kj::HttpHeaderId authorization;
  kj::HttpHeaderId retry_after;
};

// KJ disposes of objects by their own type and gives its interfaces no virtual destructor.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"

class scripted_service final : public kj::HttpService {
public:
  scripted_service(const policy_script& script, const kj::HttpHeaderTable& table,
                   const scripted_headers& ids, kj::Timer& timer, scripted_counters& counters,
                   secret_ptr key, std::function<void(const scripted_observation&)> observe);

  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url,
                            const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                            Response& response) override;

private:
  // A completion between its request and its answer.
  struct task {
    scripted_route route = scripted_route::chat;
    scripted_request request;
    const scripted_reply* reply = nullptr;
    const scripted_fault* fault = nullptr;
    bool aborted = false;
  };

  kj::Promise<void> take(bool post, const std::string& path, std::string body,
                         scripted_request from_headers, std::string authorization,
                         Response& response);
  kj::Promise<void> complete(scripted_route route, const std::string& body,
                             const scripted_request& from_headers, const std::string& authorization,
                             Response& response);
  kj::Promise<void> wait(const std::string& request_id, uint64_t milliseconds);
  kj::Promise<void> finish(task& x, Response& response);
  kj::Promise<void> control(const std::string& path, const std::string& body, Response& response);
  kj::Promise<void> answer(const task& x, const scripted_reply& reply, Response& response);
  kj::Promise<void> fail(const task& x, Response& response);
  kj::Promise<void> send(Response& response, int status, std::string body, const char* type,
                         kj::Maybe<kj::StringPtr> retry_after = nullptr);
  kj::Promise<void> send_part(Response& response, const std::string& body);
  kj::Promise<void> send_events(Response& response, std::vector<std::string> events,
                                kj::Promise<void> then);
  kj::Promise<void> refuse(Response& response, int status, const std::string& message,
                           const std::string& code);
  kj::Promise<void> stall(const scripted_fault& fault);
  void note(const scripted_request& request, int status, const char* fault,
            const std::string& authorization);
  std::string metrics() const;
  std::string version_now() const;

  const policy_script& script_;
  const kj::HttpHeaderTable& table_;
  const scripted_headers& ids_;
  kj::Timer& timer_;
  scripted_counters& counters_;
  secret_ptr key_;
  std::function<void(const scripted_observation&)> observe_;
  fault_schedule schedule_;
  std::string set_version_; ///< by the control route; then the script's list says no more
  std::multimap<std::string, kj::Own<kj::PromiseFulfiller<void>>> waiting_; ///< by request id
};

#pragma GCC diagnostic pop

} // namespace kernelmill
