#include "launch/analysis/watch/query.hpp"

#include <algorithm>

#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::watch {

expected<void> check_query(const json& query, std::initializer_list<const char*> known) {
  if (!query.is_object())
    return configuration_error("usage", "failed to read the query: it is no object", "send {}");
  for (auto i = query.begin(); i != query.end(); ++i) {
    if (std::find(known.begin(), known.end(), i.key()) != known.end()) continue;
    return configuration_error("usage", "failed to read the query: it has no key '" + i.key() + "'",
                               "its keys are " + joined(known));
  }
  return {};
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
