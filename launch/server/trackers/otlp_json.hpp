#pragma once

// INTERNAL to launch/server/trackers: OTLP's messages as JSON. Ids are hexadecimal digits there,
// and integers of 64 bits are texts.

#include <cmath>
#include <string>
#include <vector>

#include <capnp/blob.h>

#include "launch/server/trackers/otlp_settings.hpp"
#include "messages/base/json_value.hpp"
#include "messages/trace_ids.hpp"

namespace kernelmill::trackers {

using json = nlohmann::ordered_json;

// Of OTLP's enums.
inline constexpr int internal_kind = 1, client_kind = 3;

inline std::string plain(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

json value_of(const std::string& x);
json value_of(const char* x);
json value_of(capnp::Text::Reader x);
json value_of(bool x);
json value_of(double x);
json value_of(uint32_t x);
json value_of(uint64_t x);
json value_of(const std::vector<std::string>& xs);

/// A list of attributes. say() leaves out empty texts and numbers that are none.
class attributes {
public:
  template <class T>
  attributes& add(const char* key, const T& x) {
    list_.push_back({{"key", key}, {"value", value_of(x)}});
    return *this;
  }
  attributes& say(const char* key, const std::string& x) { return x.empty() ? *this : add(key, x); }
  attributes& say(const char* key, double x) { return std::isfinite(x) ? add(key, x) : *this; }
  json take() { return std::move(list_); }

private:
  json list_ = json::array();
};

struct span_frame {
  uint64_t id = 0;
  uint64_t parent = 0; ///< 0: it is the root
  std::string name;
  int kind = internal_kind;
  double start = 0, end = 0; ///< seconds since 1970
  json list = json::array(); ///< of attributes
  json events = json::array();
  std::string error; ///< empty: none
};

json make_span(trace_id trace, span_frame x);

/// `at`: seconds since 1970.
json make_event(const char* name, double at, json list);

/// A request with these spans.
json traces_request(std::vector<json> spans, const name_values& resource);

} // namespace kernelmill::trackers
