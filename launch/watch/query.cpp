#include "launch/watch/query.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace kernelmill::watch {

expected<void> check_query(const json& query, std::initializer_list<const char*> known) {
  if (!query.is_object())
    return configuration_error("usage", "failed to read the query: it is no object", "send {}");
  for (auto i = query.begin(); i != query.end(); ++i) {
    if (std::find(known.begin(), known.end(), i.key()) != known.end()) continue;
    std::string list;
    for (const auto* x : known) list += (list.empty() ? "" : ", ") + std::string{x};
    return configuration_error("usage", "failed to read the query: it has no key '" + i.key() + "'",
                               "its keys are " + list);
  }
  return {};
}

std::string text_in(const json& query, const char* key) {
  auto i = query.find(key);
  return i != query.end() && i->is_string() ? i->get<std::string>() : std::string{};
}

uint64_t count_in(const json& query, const char* key, uint64_t otherwise) {
  auto i = query.find(key);
  return i != query.end() && i->is_number_unsigned() ? i->get<uint64_t>() : otherwise;
}

expected<std::vector<json>> chosen_rows(std::vector<json> rows, const json& query,
                                        const std::vector<std::string>& keys,
                                        const std::string& sort_otherwise) {
  if (auto where = text_in(query, "where"); !where.empty()) {
    auto wanted = parse_filter(where, keys);
    KM_TRY(wanted);
    std::erase_if(rows, [&](const json& x) { return !(*wanted)(x); });
  }
  auto sort = text_in(query, "sort");
  if (auto ok = sort_rows(rows, sort.empty() ? sort_otherwise : sort, keys); !ok)
    return tl::unexpected<error>{ok.error()};
  return rows;
}

} // namespace kernelmill::watch
