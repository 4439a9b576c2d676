#include "launch/server/page/stream.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <pthread.h>
#include <sys/stat.h>

#include "launch/analysis/watch/views.hpp"
#include "launch/server/page/documents.hpp"
#include "launch/server/page/journal.hpp"
#include "launch/server/page/stream_reader.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::page {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto search_every = 1s; // for runs that began
constexpr auto live_every = 1s;
constexpr size_t most_readers = 4096;
constexpr size_t read_bytes = 1 << 20;     // of one journal at a time
constexpr size_t missed_bytes = 128 << 10; // the same for a reader that comes back
constexpr auto last_words = 5s;            // for readers to take what is left at the end
constexpr auto fresh_for = 60s;            // a journal that grew lately is followed

void refuse(const http::exchange_ptr& to, const char* why) {
  to->answer(
      http::error_response(503, {fault_class::infrastructure, "busy", why, "try again later"}));
}

} // namespace

struct event_stream::impl {
  explicit impl(watch::world x) : world(std::move(x)) {}

  void work();
  std::map<std::string, bool> search();
  void forget_removed();
  void tell_of_runs(const std::map<std::string, bool>& changed, std::vector<event_ptr>& out);
  void follow(std::vector<event_ptr>& out);
  void welcome(stream_reader& x);
  void catch_up(stream_reader& x);
  void add_live(std::vector<event_ptr>& out, const std::set<std::string>& runs);
  void hand_out(const std::vector<event_ptr>& events);

  watch::world world;
  mutable std::mutex mutex; ///< of what follows, up to the thread's own
  std::condition_variable wake;
  std::list<stream_reader> readers, arrived;
  uint64_t dropped = 0;
  std::atomic<uint64_t> told = 0;
  bool stop = false;

  // -- the thread's own ------------------------------------------------------------------------
  std::map<std::string, run_directory> followed;
  places_by_run at;         ///< how far each journal is read
  places_by_run ended_at;   ///< where it stood when the end of its run was told last
  places_by_run left_out;   ///< turns of the last look that no reader wanted
  size_t newest = SIZE_MAX; ///< turns of a look that readers want
  places_by_run idle;       ///< sizes of those that no reader follows
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
  if (impl_->stop) return refuse(to, "the process ends");
  if (impl_->readers.size() + impl_->arrived.size() >= most_readers)
    return refuse(to, "too many readers of events");
  stream_reader x;
  x.what = std::move(what);
  x.to = to;
  impl_->arrived.push_back(std::move(x));
  impl_->wake.notify_all();
}

/// Finds the journals to follow: those that grew lately, and those that readers name. Returns runs
/// that began or ended, and whether a process works on them.
std::map<std::string, bool> event_stream::impl::search() {
  std::map<std::string, bool> changed;
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
    bool grown = !works && at.contains(name) && at[name] != ended_at[name];
    if (!first && (known == before.end() || known->second != works || grown))
      changed.emplace(name, works);
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
    // A run that began while a reader watched is told from its beginning, one that was resumed from
    // where it stood.
    auto journal = run->metrics_file();
    auto from = first ? journal_size(journal) : idle.contains(name) ? idle[name] : 0;
    at.emplace(name, end_of_lines(journal, from));
    if (from > 0) ended_at[name] = at[name]; // what stood there is no news
    followed.emplace(name, std::move(*run));
  }
  forget_removed();
  return changed;
}

/// A run that comes under the name of one that was removed has another journal.
void event_stream::impl::forget_removed() {
  for (auto i = followed.begin(); i != followed.end();) {
    const auto& name = i->first;
    struct stat about {};
    bool gone = !worked_on.contains(name) &&
                ::stat((world.root + "/" + name).c_str(), &about) != 0 && errno == ENOENT;
    if (!gone) {
      ++i;
      continue;
    }
    rewritten.insert(name);
    at.erase(name);
    ended_at.erase(name);
    idle.erase(name);
    i = followed.erase(i);
  }
}

/// No line of a journal says that a run began or ended. It is told behind the lines that are there,
/// and again behind lines that came later: a run that was being laid out when it was searched for
/// may have ended before the next search.
void event_stream::impl::tell_of_runs(const std::map<std::string, bool>& changed,
                                      std::vector<event_ptr>& out) {
  for (const auto& [name, works] : changed) {
    run_directory place;
    place.path = world.root + "/" + name;
    bool live = works || watch::is_worked_on(place);
    worked_on[name] = live;
    if (!live && at.contains(name)) ended_at[name] = at[name];
    out.push_back(std::make_shared<const event>(event{
        "run", name, 0, R"({"run":")" + name + R"(","live":)" + (live ? "true}" : "false}")}));
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

/// Opens the answer, and notes where a reader that comes back left each journal. A client
/// that has its head hears of all later events, and finds earlier ones in documents.
void event_stream::impl::welcome(stream_reader& x) {
  for (const auto& [name, until] : at) {
    auto [from, fresh] = x.what.places.emplace(name, until);
    // Another journal than the one it read. Where the file is long enough, this thread is behind.
    if (from->second > until && from->second > journal_size(followed.at(name).metrics_file()))
      from->second = 0;
    if (from->second < until) x.behind.emplace(name, from->second);
  }
  http::response head;
  head.type = "text/event-stream";
  x.to->open(std::move(head));
  x.to->send("retry: 1000\n\n");
  x.breathed = clock::now();
}

/// Reads on in what a reader missed as long as it takes it: a reader that was away for long loses
/// nothing by coming back. Done before the journals are followed further.
void event_stream::impl::catch_up(stream_reader& x) {
  while (!x.behind.empty() && x.queue.size() < most_queued / 4 &&
         x.queued_bytes < most_queued_bytes / 2) {
    auto [name, from] = *x.behind.begin();
    auto i = followed.find(name);
    x.behind.erase(x.behind.begin());
    if (i == followed.end()) continue;
    auto part = read_journal(i->second.metrics_file(), name, from, missed_bytes, x.most_turns());
    x.lost += part.left_out;
    for (const auto& one : part.events)
      if (one->place <= at[name] && x.wants(*one)) dropped += x.push(one);
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

void event_stream::impl::hand_out(const std::vector<event_ptr>& events) {
  auto news = [](const event_ptr& x) { return x->name != "live"; };
  if (std::any_of(events.begin(), events.end(), news)) ++told;
  for (auto& x : readers) dropped += x.take(events, left_out);
}

void event_stream::impl::work() {
  pthread_setname_np(pthread_self(), "km-events");
  std::unique_lock lock{mutex};
  while (!stop) {
    if (readers.empty() && arrived.empty()) {
      followed.clear(); // no reader: nothing is read
      at.clear();
      ended_at.clear();
      idle.clear();
      searched = {};
      worked_on.clear();
      wake.wait(lock, [this] { return stop || !arrived.empty(); });
      continue;
    }
    std::list<stream_reader> fresh;
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
    std::vector<event_ptr> events;
    std::map<std::string, bool> changed;
    if (newcomers || now - searched > search_every) {
      changed = search();
      searched = now;
    }
    if (newcomers) {
      ++told; // of what stands in the journals already, too
      for (auto i = first_fresh; i != readers.end(); ++i) welcome(*i);
    }
    for (auto& x : readers)
      if (!x.behind.empty()) catch_up(x);
    // Slow work is done without the lock: new readers wait in `arrived`.
    lock.unlock();
    follow(events);
    tell_of_runs(changed, events);
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
    std::erase_if(readers, [&](stream_reader& x) { return !x.pump(now); });
    wake.wait_for(lock, look_every, [this] { return stop || !arrived.empty(); });
  }
  // A run that ends tells its last turns, too.
  std::vector<event_ptr> last;
  follow(last);
  hand_out(last);
  lock.unlock(); // a reader that comes now is refused at once
  auto until = clock::now() + last_words;
  auto is_done = [&](stream_reader& x) {
    return !x.pump(until) || (x.queue.empty() && x.to->pending() == 0);
  };
  while (!std::all_of(readers.begin(), readers.end(), is_done) && clock::now() < until)
    std::this_thread::sleep_for(5ms);
  lock.lock();
  for (auto& x : readers) x.to->close();
  for (auto& x : arrived) refuse(x.to, "the process ends");
}

} // namespace kernelmill::page
