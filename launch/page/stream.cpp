#include "launch/page/stream.hpp"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <list>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "launch/page/documents.hpp"
#include "launch/watch/views.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill::page {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using places = std::map<std::string, uint64_t>;

constexpr auto look_every = 50ms; // at the journals: an event is out within 200 ms of its commit
constexpr auto search_every = 1s; // for runs that began
constexpr auto live_every = 1s;
constexpr auto breath_every = 10s; // a comment, so that both ends see whether the other is there
constexpr size_t most_readers = 4096;
constexpr size_t most_followed = 64; // runs
constexpr size_t most_queued = 1000; // events that wait for a slow reader
constexpr size_t most_queued_bytes = 1 << 20;
constexpr size_t most_in_flight = 256 << 10; // bytes given to a connection that it has yet to send
constexpr size_t read_bytes = 1 << 20;       // of one journal at a time
constexpr auto last_words = 1s;              // for readers to take what is left at the end
constexpr auto fresh_for = 60s;              // a journal that grew lately is followed

std::string id_of(const places& x) {
  std::string result;
  for (const auto& [run, place] : x)
    result += (result.empty() ? "" : ",") + run + "=" + std::to_string(place);
  return result;
}

struct event {
  std::string name; ///< "turn", "group", "live"
  std::string run;
  uint64_t place = 0; ///< in the run's journal, behind it; 0: of no journal
  std::string data;
};
using event_ptr = std::shared_ptr<const event>;

struct reader {
  subscription what;
  http::exchange_ptr to;
  std::deque<event_ptr> queue;
  size_t queued_bytes = 0;
  uint64_t lost = 0;
  clock::time_point breathed;

  bool wants(const event& x) const {
    if (!what.run.empty() && !x.run.empty() && x.run != what.run) return false;
    auto told = what.places.find(x.run);
    if (x.place > 0 && told != what.places.end() && x.place <= told->second) return false;
    return what.topics.contains(x.place > 0 ? "turns" : "live");
  }
};

/// The lines of a journal from a place on, whole ones only.
struct journal_part {
  std::vector<event_ptr> events;
  uint64_t next = 0;
};

/// A line as run_journal writes it, without reading what stands behind its first fields: at
/// thousands of turns a second, that would take a good part of a core.
bool read_quickly(event& to, const std::string& line) {
  constexpr std::string_view begin = R"({"schema_version":)", kind = R"(,"kind":")";
  auto at = line.find(kind);
  if (!line.starts_with(begin) || !line.ends_with('}') || at > begin.size() + 8) return false;
  at += kind.size();
  to.name = line.substr(at, line.find('"', at) - at);
  if (to.name != "turn" && to.name != "group") return false;
  // By the folder's name, as in every other answer. Names hold no character that JSON escapes.
  constexpr std::string_view named = R"(,"run":")";
  to.data = line;
  if (auto name = line.find(named); name != std::string::npos) {
    name += named.size();
    to.data.replace(name, line.find('"', name) - name, to.run);
  } else {
    to.data.insert(to.data.size() - 1, std::string{named} + to.run + '"');
  }
  return true;
}

bool read_slowly(event& to, const std::string& line) {
  auto document = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!document.is_object()) return false;
  document["run"] = to.run;
  to.name = document.value("kind", std::string{"turn"});
  to.data = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return to.name == "turn" || to.name == "group";
}

journal_part read_journal(const std::string& path, const std::string& run, uint64_t from) {
  journal_part result{{}, from};
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return result;
  std::string text(read_bytes, '\0');
  auto n = ::pread(file.get(), text.data(), text.size(), static_cast<off_t>(from));
  if (n <= 0) return result;
  text.resize(static_cast<size_t>(n));
  for (size_t at = 0;;) {
    auto end = text.find('\n', at);
    if (end == std::string::npos) {
      // A line that is longer than all of it: nobody could show it.
      if (at == 0 && text.size() == read_bytes) result.next += read_bytes;
      return result;
    }
    auto line = text.substr(at, end - at);
    at = end + 1;
    result.next = from + at;
    event x{"", run, result.next, {}};
    if (read_quickly(x, line) || read_slowly(x, line))
      result.events.push_back(std::make_shared<const event>(std::move(x)));
  }
}

uint64_t size_of(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 ? static_cast<uint64_t>(about.st_size) : 0;
}

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
  void search();
  void follow(std::vector<event_ptr>& out);
  void catch_up(reader& x);
  void add_live(std::vector<event_ptr>& out, const std::set<std::string>& runs);
  void push(reader& x, const event_ptr& what);
  void hand_out(const std::vector<event_ptr>& events);
  bool pump(reader& x, clock::time_point now);
  std::string text_of(reader& x, const event& what) const;

  watch::world world;
  mutable std::mutex mutex; ///< of what follows, up to the thread's own
  std::condition_variable wake;
  std::list<reader> readers, arrived;
  uint64_t dropped = 0;
  bool stop = false;

  // -- the thread's own ------------------------------------------------------------------------
  std::map<std::string, run_directory> followed;
  places at;   ///< how far each journal is read
  places idle; ///< sizes of those that nobody follows
  std::set<std::string> rewritten;
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

/// Finds the journals to follow: those that grew lately, and those that readers name.
void event_stream::impl::search() {
  std::set<std::string> named;
  for (const auto& x : readers) {
    if (!x.what.run.empty()) named.insert(x.what.run);
    for (const auto& [run, place] : x.what.places) named.insert(run);
  }
  auto now = ::time(nullptr);
  for (const auto& name : list_runs(world.root)) {
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
    bool began = searched != clock::time_point{};
    at.emplace(name, !began ? size_of(run->metrics_file()) : idle.contains(name) ? idle[name] : 0);
    followed.emplace(name, std::move(*run));
  }
}

void event_stream::impl::follow(std::vector<event_ptr>& out) {
  for (const auto& [name, run] : followed) {
    auto& place = at[name];
    auto size = size_of(run.metrics_file());
    if (size < place) { // it was written anew
      place = 0;
      rewritten.insert(name);
    }
    if (size == place) continue;
    auto part = read_journal(run.metrics_file(), name, place);
    place = part.next;
    out.insert(out.end(), part.events.begin(), part.events.end());
  }
}

/// Gives a reader that comes back what it missed, up to where the journals are read.
void event_stream::impl::catch_up(reader& x) {
  for (const auto& [name, until] : at) {
    auto from = x.what.places.find(name);
    auto i = followed.find(name);
    if (from == x.what.places.end() || i == followed.end()) {
      x.what.places[name] = until;
      continue;
    }
    if (from->second > until) from->second = 0; // another journal than the one it read
    while (from->second < until) {
      auto part = read_journal(i->second.metrics_file(), name, from->second);
      if (part.next == from->second) break;
      for (const auto& one : part.events)
        if (one->place <= until && x.wants(*one)) push(x, one);
      from->second = part.next;
    }
    from->second = until;
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
  for (auto& x : readers)
    for (const auto& one : events)
      if (x.wants(*one) && (one->place > 0 || one->run == x.what.run)) push(x, one);
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
      wake.wait(lock, [this] { return stop || !arrived.empty(); });
      continue;
    }
    std::list<reader> fresh;
    fresh.swap(arrived);
    auto first_fresh = fresh.begin();
    bool newcomers = first_fresh != fresh.end();
    readers.splice(readers.end(), fresh);
    std::set<std::string> live;
    for (const auto& x : readers)
      if (x.what.topics.contains("live")) live.insert(x.what.run);
    auto now = clock::now();
    std::vector<event_ptr> events;
    if (newcomers || now - searched > search_every) {
      search();
      searched = now;
    }
    if (newcomers)
      for (auto i = first_fresh; i != readers.end(); ++i) catch_up(*i);
    // What takes time is done without the lock: those who come meanwhile wait in `arrived`.
    lock.unlock();
    follow(events);
    if (newcomers || now - shown > live_every) {
      add_live(events, live);
      shown = now;
    }
    lock.lock();
    for (const auto& name : rewritten)
      for (auto& x : readers) x.what.places.erase(name);
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
