#include "launch/server/page/subscription.hpp"

#include <algorithm>
#include <charconv>

namespace kernelmill::page {

expected<places_by_run> read_event_id(const std::string& text) {
  places_by_run result;
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

std::string event_id(const places_by_run& x) {
  std::string result;
  for (const auto& [run, place] : x)
    result += (result.empty() ? "" : ",") + run + "=" + std::to_string(place);
  return result;
}

} // namespace kernelmill::page
