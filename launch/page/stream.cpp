#include "launch/page/stream.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <list>
#include <utility>

#include <pthread.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "launch/page/documents.hpp"
#include "launch/page/journal.hpp"
#include "launch/watch/views.hpp"

namespace kernelmill::page {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using places = std::map<std::string, uint64_t>;

constexpr auto look_every = 50ms; // at the journals: an event is out within 200 ms of its commit
constexpr uint32_t looks_a_second = 1s / look_every;
constexpr auto search_every = 1s; // for runs that began
constexpr auto live_every = 1s;
constexpr auto breath_every = 10s; // a comment, so that both ends see whether the other is there
constexpr size_t most_readers = 4096;
constexpr size_t most_followed = 64; // runs
constexpr size_t most_queued = 1000; // events that wait for a slow reader
constexpr size_t most_queued_bytes = 1 << 20;
constexpr size_t most_in_flight = 256 << 10; // bytes given to a connection that it has yet to send
constexpr size_t read_bytes = 1 << 20;       // of one journal at a time
constexpr size_t missed_bytes = 128 << 10;   // the same for a reader that comes back
constexpr auto last_words = 1s;              // for readers to take what is left at the end
constexpr auto fresh_for = 60s;              // a journal that grew lately is followed

std::string id_of(const places& x) {
  std::string result;
  for (const auto& [run, place] : x)
    result += (result.empty() ? "" : ",") + run + "=" + std::to_string(place);
  return result;
}

struct reader {
  subscription what;
  http::exchange_ptr to;
  std::map<std::string, uint64_t> behind; ///< by run: how far what it missed has been read
  std::deque<event_ptr> queue;
  size_t queued_bytes = 0;
  uint64_t lost = 0;
  clock::time_point breathed;

  bool wants_turns_of(const std::string& run) const {
    return what.topics.contains("turns") && (what.run.empty() || what.run == run);
  }

  /// Of what comes in one look.
  size_t most_turns() const {
    return what.most == 0 ? SIZE_MAX : std::max(1u, what.most / looks_a_second);
  }

  bool wants(const event& x) const {
    if (!what.run.empty() && !x.run.empty() && x.run != what.run) return false;
    if (x.place > 0 && behind.contains(x.run)) return false; // it comes to that line itself
    auto told = what.places.find(x.run);
    if (x.place > 0 && told != what.places.end() && x.place <= told->second) return false;
    return what.topics.contains(x.name == "live" ? "live" : x.name == "run" ? "runs" : "turns");
  }
};

} // namespace

expected<std::map<std::string, uint64_t>> read_event_id(const std::string& text) {
  places result;
  for (size_t at = 0; at < text.size();) {
    auto end = std::min(text.find(',', at), text.size());
    auto part = text.substr(at, end - at);
    at = end + 1;
    auto sign = part.find('=');
    uint64_t place = 0;
    const auto* last = part.data() + part.size();
    if (sign == std::string::npos || result.size() >= most_followed ||
        std::from_chars(part.data() + sign + 1, last, place).ptr != last || sign + 1 == part.size())
      return configuration_error("bad_query",
                                 "failed to read the event id: it is none of this server",
                                 "send what an event's id said, or nothing");
    result[part.substr(0, sign)] = place;
  }
  return result;
}

struct event_stream::impl {
  explicit impl(watch::world x) : world(std::move(x)) {}

  void work();
  void search(std::vector<event_ptr>& out);
  void follow(std::vector<event_ptr>& out);
  void welcome(reader& x) const;
  void catch_up(reader& x);
  void add_live(std::vector<event_ptr>& out, const std::set<std::string>& runs);
  void push(reader& x, const event_ptr& what);
  void hand_out(const std::vector<event_ptr>& events);
  void hand_to(reader& x, const std::vector<event_ptr>& events);
  bool pump(reader& x, clock::time_point now);
  std::string text_of(reader& x, const event& what) const;

  watch::world world;
  mutable std::mutex mutex; ///< of what follows, up to the thread's own
  std::condition_variable wake;
  std::list<reader> readers, arrived;
  uint64_t dropped = 0;
  std::atomic<uint64_t> told = 0;
  bool stop = false;

  // -- the thread's own ------------------------------------------------------------------------
  std::map<std::string, run_directory> followed;
  places at;   ///< how far each journal is read
  places left_out; ///< turns of the last look that nobody wanted
  size_t newest = SIZE_MAX; ///< turns of a look that somebody wants
  places idle; ///< sizes of those that nobody follows
  std::set<std::string> rewritten;
  std::map<std::string, bool> worked_on; ///< all runs; whether a process works on them
  clock::time_point searched, shown;
  std::thread thread;
};

event_stream::event_stream(watch::world world) : impl_(std::make_unique<impl>(std::move(world))) {
  impl_->thread = std::thread{[x = impl_.get()] { x->work(); }};
}

event_stream::~event_stream() {
  finish();
}

void event_stream::finish() {
  if (!impl_->thread.joinable()) return;
  {
    std::lock_guard guard{impl_->mutex};
    impl_->stop = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
}

uint64_t event_stream::readers() const {
  std::lock_guard guard{impl_->mutex};
  return impl_->readers.size() + impl_->arrived.size();
}

uint64_t event_stream::told() const {
  return impl_->told;
}

uint64_t event_stream::dropped() const {
  std::lock_guard guard{impl_->mutex};
  return impl_->dropped;
}

void event_stream::add(subscription what, const http::exchange_ptr& to) {
  std::lock_guard guard{impl_->mutex};
  if (impl_->readers.size() + impl_->arrived.size() >= most_readers)
    return to->answer(http::error_response(503, {fault_class::infrastructure, "busy",
                                                 "too many readers of events", "try again later"}));
  http::response head;
  head.type = "text/event-stream";
  to->open(std::move(head));
  to->send("retry: 1000\n\n");
  reader x;
  x.what = std::move(what);
  x.to = to;
  x.breathed = clock::now();
  impl_->arrived.push_back(std::move(x));
  impl_->wake.notify_all();
}

/// Finds the journals to follow: those that grew lately, and those that readers name. Tells of runs
/// that began or ended: no line of a journal says that.
void event_stream::impl::search(std::vector<event_ptr>& out) {
  std::set<std::string> named;
  for (const auto& x : readers) {
    if (!x.what.run.empty()) named.insert(x.what.run);
    for (const auto& [run, place] : x.what.places) named.insert(run);
  }
  auto now = ::time(nullptr);
  auto before = std::exchange(worked_on, {});
  bool first = searched == clock::time_point{};
  for (const auto& name : list_runs(world.root)) {
    run_directory place;
    place.path = world.root + "/" + name;
    bool works = watch::is_worked_on(place);
    worked_on.emplace(name, works);
    // One that began and ended since the last search is told of, too.
    auto known = before.find(name);
    if (!first && (known == before.end() || known->second != works))
      out.push_back(std::make_shared<const event>(event{
          "run", name, 0, R"({"run":")" + name + R"(","live":)" + (works ? "true}" : "false}")}));
    if (followed.contains(name)) continue;
    struct stat about {};
    auto path = world.root + "/" + name + "/metrics.jsonl";
    bool there = ::stat(path.c_str(), &about) == 0;
    bool fresh = there && now - about.st_mtime < fresh_for / 1s;
    if (!named.contains(name) && (!fresh || followed.size() >= most_followed)) {
      if (there) idle[name] = static_cast<uint64_t>(about.st_size);
      continue;
    }
    auto run = run_below(world, name);
    if (!run) continue;
    // A run that began while somebody watched is told from its beginning, one that was resumed from
    // where it stood.
    at.emplace(name, first ? journal_size(run->metrics_file()) : idle.contains(name) ? idle[name] : 0);
    followed.emplace(name, std::move(*run));
  }
}

void event_stream::impl::follow(std::vector<event_ptr>& out) {
  left_out.clear();
  for (const auto& [name, run] : followed) {
    auto& place = at[name];
    auto size = journal_size(run.metrics_file());
    if (size < place) { // it was written anew
      place = 0;
      rewritten.insert(name);
    }
    if (size == place) continue;
    auto part = read_journal(run.metrics_file(), name, place, read_bytes, newest);
    place = part.next;
    if (part.left_out > 0) left_out[name] = part.left_out;
    out.insert(out.end(), part.events.begin(), part.events.end());
  }
}

/// Notes where a reader that comes back left each journal.
void event_stream::impl::welcome(reader& x) const {
  for (const auto& [name, until] : at) {
    auto [from, fresh] = x.what.places.emplace(name, until);
    if (from->second > until) from->second = 0; // another journal than the one it read
    if (from->second < until) x.behind.emplace(name, from->second);
  }
}

/// Reads on in what a reader missed as long as it takes it: whoever was away for long loses nothing
/// by coming back. Done before the journals are followed further.
void event_stream::impl::catch_up(reader& x) {
  while (!x.behind.empty() && x.queue.size() < most_queued / 4 &&
         x.queued_bytes < most_queued_bytes / 2) {
    auto [name, from] = *x.behind.begin();
    auto i = followed.find(name);
    x.behind.erase(x.behind.begin());
    if (i == followed.end()) continue;
    auto part = read_journal(i->second.metrics_file(), name, from, missed_bytes, x.most_turns());
    x.lost += part.left_out;
    for (const auto& one : part.events)
      if (one->place <= at[name] && x.wants(*one)) push(x, one);
    if (part.next > from && part.next < at[name]) x.behind.emplace(name, part.next);
  }
}

void event_stream::impl::add_live(std::vector<event_ptr>& out, const std::set<std::string>& runs) {
  for (const auto& run : runs) {
    watch::json query = {{"limit", 200u}};
    if (!run.empty()) {
      auto found = run_below(world, run);
      if (!found) continue;
      query["run"] = found->path;
    }
    auto document = watch::top_view(world, query);
    event x{"live", run, 0, ""};
    x.data = document ? document->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                      : "{\"runs\":[]}";
    out.push_back(std::make_shared<const event>(std::move(x)));
  }
}

void event_stream::impl::push(reader& x, const event_ptr& what) {
  x.queue.push_back(what);
  x.queued_bytes += what->data.size();
  while (x.queue.size() > most_queued ||
         (x.queued_bytes > most_queued_bytes && x.queue.size() > 1)) {
    x.queued_bytes -= x.queue.front()->data.size();
    x.queue.pop_front();
    ++x.lost;
    ++dropped;
  }
}

std::string event_stream::impl::text_of(reader& x, const event& what) const {
  std::string result;
  if (what.place > 0) {
    x.what.places[what.run] = what.place;
    result = "id: " + id_of(x.what.places) + "\n";
  }
  return result + "event: " + what.name + "\ndata: " + what.data + "\n\n";
}

/// Moves what fits to the connection. False: nobody reads any more.
bool event_stream::impl::pump(reader& x, clock::time_point now) {
  if (x.to->gone()) return false;
  std::string text;
  auto room = x.to->pending();
  while (!x.queue.empty() && room + text.size() < most_in_flight) {
    if (x.lost > 0) {
      text += "event: dropped\ndata: {\"dropped\":" + std::to_string(x.lost) + "}\n\n";
      x.lost = 0;
    }
    text += text_of(x, *x.queue.front());
    x.queued_bytes -= x.queue.front()->data.size();
    x.queue.pop_front();
  }
  if (text.empty() && now - x.breathed > breath_every && room == 0) text = ": here\n\n";
  if (text.empty()) return true;
  x.breathed = now;
  return x.to->send(std::move(text));
}

void event_stream::impl::hand_out(const std::vector<event_ptr>& events) {
  auto news = [](const event_ptr& x) { return x->name != "live"; };
  if (std::any_of(events.begin(), events.end(), news)) ++told;
  for (auto& x : readers) hand_to(x, events);
}

void event_stream::impl::hand_to(reader& x, const std::vector<event_ptr>& events) {
  auto wanted = [&](const event_ptr& one) {
    return x.wants(*one) && (one->name != "live" || one->run == x.what.run);
  };
  size_t too_many = 0;
  if (x.what.most > 0) {
    for (const auto& [run, turns] : left_out)
      if (x.wants_turns_of(run)) x.lost += turns;
    auto turns = static_cast<size_t>(std::count_if(events.begin(), events.end(), [&](auto& one) {
      return one->name == "turn" && wanted(one);
    }));
    too_many = turns - std::min(turns, x.most_turns());
  }
  for (const auto& one : events) {
    if (!wanted(one)) continue;
    if (too_many > 0 && one->name == "turn") {
      --too_many;
      ++x.lost;
    } else {
      push(x, one);
    }
  }
}

void event_stream::impl::work() {
  pthread_setname_np(pthread_self(), "km-events");
  std::unique_lock lock{mutex};
  while (!stop) {
    if (readers.empty() && arrived.empty()) {
      followed.clear(); // nobody looks: nothing is read
      at.clear();
      idle.clear();
      searched = {};
      worked_on.clear();
      wake.wait(lock, [this] { return stop || !arrived.empty(); });
      continue;
    }
    std::list<reader> fresh;
    fresh.swap(arrived);
    auto first_fresh = fresh.begin();
    bool newcomers = first_fresh != fresh.end();
    readers.splice(readers.end(), fresh);
    std::set<std::string> live;
    newest = 0;
    for (const auto& x : readers) {
      if (x.what.topics.contains("live")) live.insert(x.what.run);
      newest = std::max(newest, x.most_turns());
    }
    auto now = clock::now();
    std::vector<event_ptr> events, of_runs;
    if (newcomers || now - searched > search_every) {
      search(of_runs);
      searched = now;
    }
    if (newcomers)
      for (auto i = first_fresh; i != readers.end(); ++i) welcome(*i);
    for (auto& x : readers)
      if (!x.behind.empty()) catch_up(x);
    // What takes time is done without the lock: those who come meanwhile wait in `arrived`.
    lock.unlock();
    follow(events);
    events.insert(events.end(), of_runs.begin(), of_runs.end());
    if (newcomers || now - shown > live_every) {
      add_live(events, live);
      shown = now;
    }
    lock.lock();
    for (const auto& name : rewritten)
      for (auto& x : readers) {
        x.what.places.erase(name);
        x.behind.erase(name);
      }
    rewritten.clear();
    hand_out(events);
    std::erase_if(readers, [&](reader& x) { return !pump(x, now); });
    wake.wait_for(lock, look_every, [this] { return stop || !arrived.empty(); });
  }
  // A run that ends tells its last turns, too.
  std::vector<event_ptr> last;
  follow(last);
  hand_out(last);
  auto until = clock::now() + last_words;
  auto is_done = [&](reader& x) {
    return !pump(x, until) || (x.queue.empty() && x.to->pending() == 0);
  };
  while (!std::all_of(readers.begin(), readers.end(), is_done) && clock::now() < until)
    std::this_thread::sleep_for(5ms);
  for (auto& x : readers) x.to->close();
}

} // namespace kernelmill::page
