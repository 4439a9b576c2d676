#include "launch/server/page/stream_reader.hpp"

namespace kernelmill::page {

namespace {

// A comment, so that both ends see whether the other is there.
constexpr std::chrono::seconds breath_every{10};
constexpr size_t most_in_flight = 256 << 10; // bytes given to a connection that it has yet to send

} // namespace

bool stream_reader::wants(const event& x) const {
  if (!what.run.empty() && !x.run.empty() && x.run != what.run) return false;
  if (x.place > 0 && behind.contains(x.run)) return false; // it comes to that line itself
  auto told = what.places.find(x.run);
  if (x.place > 0 && told != what.places.end() && x.place <= told->second) return false;
  return what.topics.contains(x.name == "live" ? "live" : x.name == "run" ? "runs" : "turns");
}

size_t stream_reader::push(const event_ptr& one) {
  size_t dropped = 0;
  queue.push_back(one);
  queued_bytes += one->data.size();
  while (queue.size() > most_queued || (queued_bytes > most_queued_bytes && queue.size() > 1)) {
    queued_bytes -= queue.front()->data.size();
    queue.pop_front();
    ++lost;
    ++dropped;
  }
  return dropped;
}

std::string stream_reader::text_of(const event& one) {
  std::string result;
  if (one.place > 0) {
    what.places[one.run] = one.place;
    result = "id: " + event_id(what.places) + "\n";
  }
  return result + "event: " + one.name + "\ndata: " + one.data + "\n\n";
}

bool stream_reader::pump(clock::time_point now) {
  if (to->gone()) return false;
  std::string text;
  auto room = to->pending();
  while (!queue.empty() && room + text.size() < most_in_flight) {
    if (lost > 0) {
      text += "event: dropped\ndata: {\"dropped\":" + std::to_string(lost) + "}\n\n";
      lost = 0;
    }
    text += text_of(*queue.front());
    queued_bytes -= queue.front()->data.size();
    queue.pop_front();
  }
  if (text.empty() && now - breathed > breath_every && room == 0) text = ": here\n\n";
  if (text.empty()) return true;
  breathed = now;
  return to->send(std::move(text));
}

size_t stream_reader::take(const std::vector<event_ptr>& events, const places_by_run& left_out) {
  size_t dropped = 0;
  auto wanted = [&](const event_ptr& one) {
    return wants(*one) && (one->name != "live" || one->run == what.run);
  };
  size_t too_many = 0;
  if (what.most > 0) {
    for (const auto& [run, turns] : left_out) {
      bool comes_to_them = behind.contains(run); // and counts them then
      if (wants_turns_of(run) && !comes_to_them) lost += turns;
    }
    auto turns = static_cast<size_t>(std::count_if(events.begin(), events.end(), [&](auto& one) {
      return one->name == "turn" && wanted(one);
    }));
    too_many = turns - std::min(turns, most_turns());
  }
  for (const auto& one : events) {
    if (!wanted(one)) continue;
    if (too_many > 0 && one->name == "turn") {
      --too_many;
      ++lost;
    } else {
      dropped += push(one);
    }
  }
  return dropped;
}

} // namespace kernelmill::page
