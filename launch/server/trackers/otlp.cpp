#include "launch/server/trackers/otlp.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <kj/exception.h>

#include "actors/policy_client/http/http_client.hpp"
#include "launch/server/trackers/otlp_json.hpp"
#include "launch/server/trackers/otlp_settings.hpp"
#include "launch/server/trackers/posting.hpp"

namespace kernelmill::trackers {

namespace {

using namespace std::chrono_literals;

constexpr size_t most_records = 8192; // that wait
constexpr size_t most_record_bytes = size_t{64} << 20;
constexpr size_t most_spans = 512; // of one request
constexpr size_t most_text_bytes = size_t{4} << 20;
constexpr auto gather_for = 1s;
constexpr int most_tries = 5; // of one request
constexpr auto longest_pause = 30s;
constexpr size_t most_reply = 64 << 10;

log_place own_place() {
  return {"otlp", {}, {}, {}};
}

struct send_result {
  std::string fault; ///< empty: it was taken
  bool again = false;
  std::optional<std::chrono::seconds> after; ///< what the collector asks for
};

// A success may be of a part.
send_result read_reply(const http_response& x) {
  send_result result;
  if (x.status >= 200 && x.status < 300) {
    auto body = json::parse(x.body, nullptr, false);
    if (!body.is_object() || !body.contains("partialSuccess")) return result;
    auto part = body["partialSuccess"];
    if (part.is_object() && part.contains("errorMessage") && part["errorMessage"].is_string() &&
        part.contains("rejectedSpans"))
      result.fault = "it refused " + part["rejectedSpans"].dump() +
                     " spans: " + part["errorMessage"].get<std::string>().substr(0, 200);
    return result;
  }
  result.fault =
      x.status == 0 ? std::string{to_string(x.fault)} : "status " + std::to_string(x.status);
  // By OTLP's rules; of a transport everything.
  result.again = x.status == 0 || x.status == 429 || (x.status >= 502 && x.status <= 504);
  auto after = x.header("retry-after");
  if (!after.empty() && after.size() < 5 && after.find_first_not_of("0123456789") == after.npos)
    result.after = std::chrono::seconds{std::stoi(std::string{after})};
  return result;
}

} // namespace

class run_traces::impl {
public:
  using clock = std::chrono::steady_clock;

  impl(otlp_settings x, traced_run what, std::shared_ptr<const store> from,
       std::shared_ptr<const artifact_store> artifacts, logger to,
       std::unique_ptr<http_client> transport)
      : settings(std::move(x)), run(std::move(what)), records(std::move(from)),
        texts(std::move(artifacts)), log(std::move(to)), client(std::move(transport)) {
    run.texts = settings.content ? texts.get() : nullptr;
    thread = std::thread{[this] { work(); }};
  }

  ~impl() { finish(); }

  void finish();
  void follow(wire::Record::Reader x);
  void work();
  std::deque<Message<wire::Record>> take(size_t& bytes);
  void append_spans(std::vector<json>& to, const Message<wire::Record>& record);
  bool send(const std::vector<json>& spans);
  bool pause(clock::duration time);
  clock::time_point limit();
  bool is_over();
  void tell_losses();

  const otlp_settings settings;
  traced_run run;
  std::shared_ptr<const store> records;
  std::shared_ptr<const artifact_store> texts;
  logger log;
  std::unique_ptr<http_client> client;
  uint64_t sent = 0, refused = 0; ///< spans
  uint64_t unreadable = 0;        ///< records
  bool troubled = false;          ///< the last request was lost

  std::mutex mutex; ///< of what follows
  std::condition_variable wake;
  std::deque<Message<wire::Record>> waiting;
  size_t waiting_bytes = 0;
  uint64_t dropped = 0; ///< records
  bool ending = false;
  clock::time_point last_call;
  std::thread thread;
};

void run_traces::impl::finish() {
  if (!thread.joinable()) return;
  {
    std::lock_guard guard{mutex};
    ending = true;
    last_call = clock::now() + std::chrono::milliseconds{settings.timeout_ms};
  }
  wake.notify_all();
  thread.join();
}

void run_traces::impl::follow(wire::Record::Reader x) {
  if (!x.isTurn() && !x.isEpisode()) return;
  auto where = x.isTurn() ? x.getTurn().getEpisode() : x.getEpisode().getEpisode();
  if (!is_traced(run, where, settings.share)) return;
  auto copy = build<wire::Record>([&](wire::Record::Builder to) {
    if (x.isTurn())
      to.setTurn(x.getTurn());
    else
      to.setEpisode(x.getEpisode());
  });
  std::lock_guard guard{mutex};
  if (ending || waiting.size() >= most_records || waiting_bytes + copy.size() > most_record_bytes) {
    ++dropped;
    return;
  }
  waiting_bytes += copy.size();
  waiting.push_back(std::move(copy));
  if (waiting.size() == 1 || waiting.size() == most_spans) wake.notify_all();
}

run_traces::impl::clock::time_point run_traces::impl::limit() {
  auto result = clock::now() + std::chrono::milliseconds{settings.timeout_ms};
  std::lock_guard guard{mutex};
  return ending ? std::min(result, last_call) : result;
}

bool run_traces::impl::is_over() {
  std::lock_guard guard{mutex};
  return ending && clock::now() >= last_call;
}

/// False when the time is up.
bool run_traces::impl::pause(clock::duration time) {
  std::unique_lock lock{mutex};
  auto until = clock::now() + time;
  // At the end of the run the pause is no longer than what is left.
  while (clock::now() < (ending ? std::min(until, last_call) : until))
    wake.wait_until(lock, ending ? std::min(until, last_call) : until);
  return !ending || clock::now() < last_call;
}

void run_traces::impl::append_spans(std::vector<json>& to, const Message<wire::Record>& record) {
  try {
    auto view = record.open();
    if (view->isTurn()) {
      auto spans = turn_spans(view->getTurn(), run);
      if (!spans) {
        ++unreadable;
        return;
      }
      for (auto& x : *spans) to.push_back(std::move(x));
      return;
    }
    auto end = view->getEpisode();
    auto where = end.getEpisode();
    auto turns = read_episode(*records, run.name, where.getGroup(), where.getMember());
    if (!turns) ++unreadable;
    to.push_back(episode_span(end, turns ? *turns : stored_episode{}, run));
  } catch (const kj::Exception&) {
    ++unreadable;
  }
}

/// True when it was taken.
bool run_traces::impl::send(const std::vector<json>& spans) {
  auto body =
      traces_request(spans, settings.resource).dump(-1, ' ', false, json::error_handler_t::replace);
  send_result last;
  for (int i = 0; i < most_tries; ++i) {
    http_request x;
    x.url = settings.url;
    x.body = body;
    x.headers = settings.headers;
    x.headers.emplace_back("Content-Type", "application/json");
    x.body_limit = most_reply;
    auto until = clock::now() + std::chrono::milliseconds{settings.timeout_ms};
    auto response = post_until(*client, std::move(x), [&] { return std::min(until, limit()); });
    // One that the end of the run cut short says less than the one before it.
    if (!response && !last.fault.empty() && is_over()) break;
    last = response ? read_reply(*response)
                    : send_result{"it took longer than otlp.timeout_ms", true, std::nullopt};
    if (last.fault.empty() || !last.again || is_over()) break;
    auto wait = last.after.value_or(std::chrono::seconds{1 << i});
    if (!pause(std::min<clock::duration>(wait, longest_pause))) break;
  }
  if (last.fault.empty() && std::exchange(troubled, false))
    log.info(own_place(), "the collector takes traces again");
  if (!last.fault.empty() && !std::exchange(troubled, true))
    log.warn(own_place(), "failed to send traces to the collector: " + last.fault +
                              "; the run goes on without them");
  return last.fault.empty();
}

std::deque<Message<wire::Record>> run_traces::impl::take(size_t& bytes) {
  std::unique_lock lock{mutex};
  wake.wait(lock, [this] { return ending || !waiting.empty(); });
  wake.wait_for(lock, gather_for, [this] { return ending || waiting.size() >= most_spans; });
  bytes = std::exchange(waiting_bytes, 0);
  return std::exchange(waiting, {});
}

void run_traces::impl::work() {
  for (bool over = false; !over;) {
    size_t bytes = 0;
    auto batch = take(bytes);
    while (!batch.empty() && !is_over()) {
      std::vector<json> spans;
      size_t text = 0;
      for (; !batch.empty() && spans.size() < most_spans && text < most_text_bytes;
           batch.pop_front()) {
        text += batch.front().size();
        append_spans(spans, batch.front());
      }
      auto count = spans.size();
      (send(spans) ? sent : refused) += count;
    }
    std::lock_guard guard{mutex};
    dropped += batch.size();
    over = ending && (waiting.empty() || clock::now() >= last_call);
    if (over) dropped += waiting.size();
  }
  tell_losses();
}

void run_traces::impl::tell_losses() {
  uint64_t lost = 0;
  {
    std::lock_guard guard{mutex};
    lost = dropped;
  }
  if (lost + refused + unreadable == 0) {
    log.debug(own_place(), fmt::format("sent {} spans", sent));
    return;
  }
  log.warn(own_place(),
           fmt::format("sent {} spans; {} spans were not taken, and {} records were never sent "
                       "since the collector was slow or gone",
                       sent, refused, lost + unreadable));
}

run_traces::run_traces(std::unique_ptr<impl> x) : impl_(std::move(x)) {
  // nop
}

run_traces::~run_traces() = default;

void run_traces::finish() {
  impl_->finish();
}

void run_traces::follow(wire::Record::Reader x) {
  impl_->follow(x);
}

expected<void> run_traces::check(const otlp_section& keys) {
  KM_TRY(resolve_otlp(keys, read_variable));
  return {};
}

expected<std::unique_ptr<run_traces>> run_traces::start(const otlp_section& keys, traced_run run,
                                                        std::shared_ptr<const store> records,
                                                        std::shared_ptr<const artifact_store> texts,
                                                        logger log) {
  auto settings = resolve_otlp(keys, read_variable);
  KM_TRY(settings);
  if (!settings->why_nothing.empty())
    log.warn(own_place(), "no traces are sent: " + settings->why_nothing);
  if (settings->url.empty() || settings->share <= 0) return nullptr;
  auto client = http_client::start();
  KM_TRY(client);
  return std::unique_ptr<run_traces>{new run_traces{
      std::make_unique<impl>(std::move(*settings), std::move(run), std::move(records),
                             std::move(texts), std::move(log), std::move(*client))}};
}

} // namespace kernelmill::trackers
