#include "launch/remote/near_record.hpp"

#include <cstdlib>
#include <filesystem>

#include "launch/remote/order.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_fields.hpp"
#include "storage/files.hpp"

namespace kernelmill::remote {

namespace {

std::string records_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::string base = state && *state == '/' ? std::string{state}
                     : home                 ? std::string{home} + "/.local/state"
                                            : std::string{"/tmp"};
  return base + "/kernelmill/remote";
}

std::string record_file(const std::string& session) {
  return records_folder() + "/" + session + ".json";
}

} // namespace

expected<void> store_record(const near_record& x) {
  KM_TRY(make_directories(records_folder()));
  auto places = nlohmann::json::array();
  for (const auto& place : x.places) places.push_back({{"far", place.far}, {"near", place.near}});
  nlohmann::json document{
      {"session", x.session}, {"host", x.host}, {"command", x.command}, {"places", places}};
  return write_file(record_file(x.session), document.dump(2) + "\n");
}

expected<near_record> find_record(const std::string& session) {
  auto text = is_session_id(session) ? read_whole(record_file(session)) : std::nullopt;
  auto x = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (!x.is_object() || !x.contains("places") || !x["places"].is_array())
    return configuration_error(
        "not_found", "failed to find the session " + session + ": it was not started here",
        "`kernelmill remote ls HOST` shows the sessions of a host; attach "
        "where a session was started");
  near_record result{session, text_in(x, "host"), text_in(x, "command"), {}};
  for (const auto& place : x["places"])
    if (place.is_object()) result.places.push_back({text_in(place, "far"), text_in(place, "near")});
  return result;
}

void forget_record(const std::string& session) {
  std::error_code ignored;
  std::filesystem::remove(record_file(session), ignored);
}

} // namespace kernelmill::remote
