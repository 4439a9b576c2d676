#pragma once

// INTERNAL to launch/server/page: lists of many rows of which few are shown. Only these are made as
// a whole; of the others there is no more than what they are filtered and sorted by.

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "messages/base/json_value.hpp"
#include "messages/error.hpp"

namespace kernelmill::page {

/// Takes the keys of a row in their order.
class row_builder {
public:
  /// `only`: the keys that are wanted; none: all.
  explicit row_builder(const std::vector<std::string>* only = nullptr) : only_(only) {}

  bool wants(const char* key) const {
    return only_ == nullptr || std::find(only_->begin(), only_->end(), key) != only_->end();
  }

  template <class T>
  void add(const char* key, T&& value) {
    if (wants(key)) row[key] = std::forward<T>(value);
  }

  nlohmann::ordered_json row = nlohmann::ordered_json::object();

private:
  const std::vector<std::string>* only_;
};

using row_maker = std::function<void(size_t, row_builder&)>;

/// The same as paged() of what is left of `count` rows by the query's `where` in the order of its
/// `sort`, both over `keys`. Errors: "usage".
expected<nlohmann::ordered_json> listed(size_t count, const row_maker& make,
                                        const nlohmann::ordered_json& query,
                                        const std::vector<std::string>& keys, const char* name);

} // namespace kernelmill::page
