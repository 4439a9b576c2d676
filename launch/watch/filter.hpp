#pragma once

// `--where` and `--sort` of every list: a condition over the keys of its rows.
//   state=queued and age>60
//   task~softmax and not (reward>0.5 or state=thinking)

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "messages/error.hpp"

namespace kernelmill::watch {

using json = nlohmann::ordered_json;
using row_filter = std::function<bool(const json&)>;

/// Reads a condition; `keys` are those that rows may have. `=` and `!=` compare texts or numbers,
/// `<`
/// `<=` `>` `>=` numbers, `~` looks for a text within another. A row without the key matches `!=`
/// alone. Empty: every row. Errors: "usage" with the place and the next step.
expected<row_filter> parse_filter(const std::string& text, const std::vector<std::string>& keys);

/// Sorts rows by a key, "-KEY" the other way round; rows without the key stand last. Numbers within
/// texts count as such: g2 stands before g10. Errors: "usage".
expected<void> sort_rows(std::vector<json>& rows, const std::string& key,
                         const std::vector<std::string>& keys);

} // namespace kernelmill::watch
