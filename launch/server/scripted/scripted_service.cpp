#include "launch/server/scripted/scripted_service.hpp"

#include <chrono>
#include <sstream>

#include <kj/debug.h>
#include <openssl/crypto.h>

#include "messages/base/hash.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t max_request_bytes = uint64_t{32} << 20;
constexpr size_t huge_piece = size_t{64} << 10;

constexpr const char* json_type = "application/json";
constexpr const char* event_type = "text/event-stream";

// Seconds since 1970; the only part of an answer that two runs do not share.
int64_t created() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

const char* reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 429: return "Too Many Requests";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    default: return "Scripted";
  }
}

std::string text_of(kj::Maybe<kj::StringPtr> x) {
  KJ_IF_MAYBE (text, x) {
    return {text->begin(), text->size()};
  }
  return {};
}

const char* name_of(fault_kind x) {
  switch (x) {
    case fault_kind::status: return "status";
    case fault_kind::garbage: return "garbage";
    case fault_kind::stall: return "stall";
    case fault_kind::truncate: return "truncate";
    case fault_kind::reset: return "reset";
    case fault_kind::abort: return "abort";
    case fault_kind::error: return "error";
    case fault_kind::huge: return "huge";
  }
  return "status";
}

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

kj::ArrayPtr<const kj::byte> bytes_of(const std::string& x) {
  return {reinterpret_cast<const kj::byte*>(x.data()), x.size()};
}

// A draw per session and turn: the same after a resume. Requests without a session share one draw.
uint64_t draw_of(const scripted_request& x) {
  auto slash = x.session.rfind('/');
  auto episode = slash == std::string::npos ? x.session : x.session.substr(slash + 1);
  return mix(hash_of(episode), hash_of(x.task), x.turn);
}

// Writes one text after the other.
kj::Promise<void> write_all(kj::AsyncOutputStream& to, const std::vector<std::string>& texts,
                            size_t first) {
  if (first == texts.size()) return kj::READY_NOW;
  return to.write(texts[first].data(), texts[first].size()).then([&to, &texts, first] {
    return write_all(to, texts, first + 1);
  });
}

} // namespace

scripted_service::scripted_service(const policy_script& script, const kj::HttpHeaderTable& table,
                                   const scripted_headers& ids, kj::Timer& timer,
                                   scripted_counters& counters, secret_ptr key,
                                   std::function<void(const scripted_observation&)> observe)
    : script_(script), table_(table), ids_(ids), timer_(timer), counters_(counters),
      key_(std::move(key)), observe_(std::move(observe)), schedule_(script.faults) {
  // nop
}

kj::Promise<void> scripted_service::request(kj::HttpMethod method, kj::StringPtr url,
                                            const kj::HttpHeaders& headers,
                                            kj::AsyncInputStream& body, Response& response) {
  // `url` and `headers` are gone once the body is read.
  std::string path{url.begin(), url.size()};
  path.resize(std::min(path.find('?'), path.size()));
  auto get = method == kj::HttpMethod::GET;
  if (get && path == "/v1/models")
    return send(response, 200, models_answer(script_.model, created()), json_type);
  if (get && path == "/metrics") return send(response, 200, metrics(), "text/plain; version=0.0.4");
  if (!get && method != kj::HttpMethod::POST)
    return refuse(response, 405, "completions are asked for with POST", "");
  scripted_request from_headers;
  from_headers.session = text_of(headers.get(ids_.session));
  from_headers.request_id = text_of(headers.get(ids_.request_id));
  auto authorization = text_of(headers.get(ids_.authorization));
  return body.readAllBytes(max_request_bytes)
      .then([this, get, path = std::move(path), from_headers = std::move(from_headers),
             authorization = std::move(authorization),
             &response](kj::Array<kj::byte> bytes) mutable {
        return take(!get, path, {reinterpret_cast<const char*>(bytes.begin()), bytes.size()},
                    std::move(from_headers), std::move(authorization), response);
      });
}

kj::Promise<void> scripted_service::take(bool post, const std::string& path, std::string body,
                                         scripted_request from_headers, std::string authorization,
                                         Response& response) {
  auto route = completion_route(script_.kind, path);
  if (route != scripted_route::none && !post)
    return refuse(response, 405, "completions are asked for with POST", "");
  if (route != scripted_route::none)
    return complete(route, body, from_headers, authorization, response);
  if (post && (path == "/update_weight_version" || path == "/abort_request"))
    return control(path, body, response);
  auto side = answer_side_route(script_, post, path, body, version_now());
  if (side.status != 0) return send(response, side.status, std::move(side.body), json_type);
  return refuse(response, 404, "there is no " + path + " here; try /v1/chat/completions", "");
}

kj::Promise<void> scripted_service::complete(scripted_route route, const std::string& body,
                                             const scripted_request& from_headers,
                                             const std::string& authorization, Response& response) {
  ++counters_.requests;
  if (auto now = ++counters_.in_flight; now > counters_.peak.load()) counters_.peak.store(now);
  auto leave = kj::defer([this] { --counters_.in_flight; });
  auto request = read_request(route, script_, body, from_headers.session);
  if (!request) {
    note(from_headers, 400, "", authorization);
    return refuse(response, 400, request.error().message, "");
  }
  if (request->request_id.empty()) request->request_id = from_headers.request_id;
  if (key_ && !same(authorization, "Bearer " + std::string{key_->reveal()})) {
    note(*request, 401, "", authorization);
    return refuse(response, 401, "the key is wrong", "invalid_api_key");
  }
  if (request->model != script_.model) {
    note(*request, 404, "", authorization);
    return refuse(response, 404, "there is no model " + request->model, "model_not_found");
  }
  const auto* reply = choose_reply(script_, *request);
  if (reply == nullptr) {
    note(*request, 400, "", authorization);
    return refuse(response, 400,
                  "the script has no reply for task \"" + request->task + "\", turn t" +
                      std::to_string(request->turn),
                  "no_scripted_reply");
  }
  const auto* fault = schedule_.next(*request);
  counters_.faults += fault != nullptr ? 1 : 0;
  note(*request,
       fault == nullptr                    ? 200
       : fault->kind == fault_kind::status ? fault->status
                                           : 0,
       fault == nullptr ? "" : name_of(fault->kind), authorization);
  request->version_before = version_now();
  auto draw = draw_of(*request);
  auto ms = wait_ms(script_.latency, draw, sample(*request, *reply).tokens.size());
  auto x = kj::heap<task>(task{route, std::move(*request), reply, fault, false});
  auto& kept = *x;
  return wait(kept.request.request_id, static_cast<uint64_t>(ms))
      .then([] { return false; },
            [](kj::Exception&&) { return true; }) // a client has asked to abort it
      .then([this, &kept, &response](bool aborted) {
        kept.aborted = aborted;
        return finish(kept, response);
      })
      .attach(kj::mv(x), kj::mv(leave));
}

// Waits, unless the request is aborted: then it fails at once.
kj::Promise<void> scripted_service::wait(const std::string& request_id, uint64_t milliseconds) {
  auto over = timer_.afterDelay(milliseconds * kj::MILLISECONDS);
  if (request_id.empty() || milliseconds == 0) return over;
  auto abort = kj::newPromiseAndFulfiller<void>();
  auto entry = waiting_.emplace(request_id, kj::mv(abort.fulfiller));
  return over.exclusiveJoin(kj::mv(abort.promise)).attach(kj::defer([this, entry] {
    waiting_.erase(entry);
  }));
}

kj::Promise<void> scripted_service::finish(task& x, Response& response) {
  x.request.version_after = version_now();
  if (x.fault != nullptr) return fail(x, response);
  if (!x.aborted) return answer(x, *x.reply, response);
  auto aborted = *x.reply;
  aborted.finish_reason = abort_reason;
  return answer(x, aborted, response);
}

kj::Promise<void> scripted_service::answer(const task& x, const scripted_reply& reply,
                                           Response& response) {
  const auto& request = x.request;
  counters_.tokens += sample(request, reply).tokens.size();
  auto id =
      "chatcmpl-" + (request.request_id.empty() ? std::string{"scripted"} : request.request_id);
  if (request.stream)
    return send_events(response, chat_events(request, reply, id, created()), kj::READY_NOW);
  return send(response, 200, answer_body(x.route, request, reply, id, created()), json_type);
}

// What an operator does to a server while it runs.
kj::Promise<void> scripted_service::control(const std::string& path, const std::string& body,
                                            Response& response) {
  auto asked = nlohmann::json::parse(body, nullptr, false);
  auto text = [&](const char* key) {
    return asked.is_object() && asked.contains(key) && asked[key].is_string()
               ? asked[key].get<std::string>()
               : std::string{};
  };
  if (path == "/update_weight_version") {
    auto version = text("new_version").empty() ? text("weight_version") : text("new_version");
    if (version.empty()) return refuse(response, 400, "\"new_version\" is missing", "");
    set_version_ = version;
    return send(response, 200, R"({"success":true})", json_type);
  }
  auto all = asked.is_object() && asked.value("abort_all", false);
  std::vector<kj::Own<kj::PromiseFulfiller<void>>*> hit;
  for (auto& [id, fulfiller] : waiting_)
    if (all || id == text("rid")) hit.push_back(&fulfiller);
  for (auto* x : hit) (*x)->reject(KJ_EXCEPTION(FAILED, "aborted"));
  return send(response, 200, "", json_type);
}

std::string scripted_service::version_now() const {
  if (!set_version_.empty()) return set_version_;
  std::string result;
  for (const auto& x : script_.versions)
    if (x.from_request <= std::max<uint64_t>(counters_.requests.load(), 1)) result = x.version;
  return result;
}

// -- faults -----------------------------------------------------------------------------------

kj::Promise<void> scripted_service::fail(const task& x, Response& response) {
  const auto& fault = *x.fault;
  const auto& request = x.request;
  const auto& reply = *x.reply;
  auto message = fault.message.empty() ? "a scripted fault" : fault.message;
  switch (fault.kind) {
    case fault_kind::status: {
      kj::Maybe<kj::StringPtr> retry_after;
      if (fault.retry_after) retry_after = kj::StringPtr{fault.retry_after->c_str()};
      return send(response, fault.status,
                  error_answer(fault.status, message, "scripted", fault.code), json_type,
                  retry_after);
    }
    case fault_kind::garbage: return send(response, 200, "<html>scripted garbage \xff", json_type);
    case fault_kind::reset: return KJ_EXCEPTION(DISCONNECTED, "a scripted reset");
    case fault_kind::abort: {
      auto aborted = reply;
      aborted.finish_reason = abort_reason;
      return answer(x, aborted, response);
    }
    case fault_kind::huge: {
      auto large = reply;
      large.text.assign(fault.bytes, 'x');
      for (size_t i = huge_piece; i < large.text.size(); i += huge_piece) large.text[i] = ' ';
      return answer(x, large, response);
    }
    case fault_kind::error: {
      auto error = error_answer(fault.status, message, "scripted", fault.code);
      if (!request.stream) return send(response, 200, std::move(error), json_type);
      auto first = chat_events(request, reply, "chatcmpl-scripted", created()).front();
      return send_events(response, {first, "data: " + error + "\n\n"}, kj::READY_NOW);
    }
    case fault_kind::truncate: {
      if (!request.stream)
        return send_part(response,
                         answer_body(x.route, request, reply, "chatcmpl-scripted", created()));
      auto events = chat_events(request, reply, "chatcmpl-scripted", created());
      events.resize(events.size() / 2);
      return send_events(response, std::move(events), kj::READY_NOW);
    }
    case fault_kind::stall: {
      if (!request.stream) return stall(fault);
      auto first = chat_events(request, reply, "chatcmpl-scripted", created()).front();
      return send_events(response, {first}, stall(fault));
    }
  }
  return kj::READY_NOW;
}

kj::Promise<void> scripted_service::stall(const scripted_fault& fault) {
  auto wait = static_cast<int64_t>(fault.seconds * 1000) * kj::MILLISECONDS;
  return timer_.afterDelay(wait).then([]() -> kj::Promise<void> {
    return KJ_EXCEPTION(DISCONNECTED, "a scripted stall has ended");
  });
}

// -- writing ----------------------------------------------------------------------------------

kj::Promise<void> scripted_service::send(Response& response, int status, std::string body,
                                         const char* type, kj::Maybe<kj::StringPtr> retry_after) {
  kj::HttpHeaders headers{table_};
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, type);
  KJ_IF_MAYBE (text, retry_after) {
    headers.set(ids_.retry_after, *text);
  }
  auto kept = kj::heap<std::string>(std::move(body));
  auto stream = response.send(static_cast<kj::uint>(status), reason(status), headers, kept->size());
  auto written = stream->write(bytes_of(*kept).begin(), kept->size());
  return written.attach(kj::mv(stream), kj::mv(kept));
}

// Announces the whole body, sends half of it, and lets the connection close.
kj::Promise<void> scripted_service::send_part(Response& response, const std::string& body) {
  kj::HttpHeaders headers{table_};
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, json_type);
  auto kept = kj::heap<std::string>(body);
  auto stream = response.send(200, "OK", headers, kept->size());
  auto written = stream->write(bytes_of(*kept).begin(), kept->size() / 2);
  return written.attach(kj::mv(stream), kj::mv(kept));
}

kj::Promise<void> scripted_service::send_events(Response& response, std::vector<std::string> events,
                                                kj::Promise<void> then) {
  kj::HttpHeaders headers{table_};
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, event_type);
  auto kept = kj::heap<std::vector<std::string>>(std::move(events));
  auto stream = response.send(200, "OK", headers);
  auto written = write_all(*stream, *kept, 0);
  // The end of the body is written when the stream is dropped: after `then`.
  return written.then([then = kj::mv(then)]() mutable { return kj::mv(then); })
      .attach(kj::mv(stream), kj::mv(kept));
}

kj::Promise<void> scripted_service::refuse(Response& response, int status,
                                           const std::string& message, const std::string& code) {
  return send(response, status, error_answer(status, message, "invalid_request_error", code),
              json_type);
}

void scripted_service::note(const scripted_request& request, int status, const char* fault,
                            const std::string& authorization) {
  if (!observe_) return;
  observe_({request, status, fault, authorization.substr(0, authorization.find(' '))});
}

std::string scripted_service::metrics() const {
  std::ostringstream out;
  auto line = [&](const char* name, const char* type, uint64_t value) {
    out << "# TYPE " << name << ' ' << type << '\n' << name << ' ' << value << '\n';
  };
  line("scripted_requests_total", "counter", counters_.requests.load());
  line("scripted_faults_total", "counter", counters_.faults.load());
  line("scripted_generation_tokens_total", "counter", counters_.tokens.load());
  line("scripted_requests_running", "gauge", counters_.in_flight.load());
  auto names = gauges_of(script_.kind);
  line(names.running, "gauge", counters_.in_flight.load());
  line(names.waiting, "gauge", 0);
  return out.str();
}

} // namespace kernelmill
