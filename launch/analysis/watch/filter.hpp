#pragma once

// `--where` and `--sort` of every list, and what `query` asks: a condition over the keys of rows.
//   state=queued and age>60
//   task~softmax and not (reward>0.5 or state=thinking)
//   accepted and speedup.low > 2 and task ~ "level1/*"

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "messages/error.hpp"

namespace kernelmill::watch {

using json = nlohmann::ordered_json;
using row_filter = std::function<bool(const json&)>;

/// What rows may have. A flag is true or false and may stand alone: `accepted and not timed`.
struct condition_keys {
  std::vector<std::string> names; ///< all, flags too
  std::vector<std::string> flags;
  std::string list; ///< where they are listed, for hints; empty: hints list them
};

struct condition {
  row_filter holds;
  std::vector<std::string> keys; ///< those that it asks for, each once
};

/// Reads a condition. `=` and `!=` compare texts or numbers, `<` `<=` `>` `>=` numbers. `~` looks
/// for a text within another; with `*` or `?` in it, it is a pattern for the whole text. A row
/// without the key matches `!=` alone. Of a list each element may be what is asked for. Empty:
/// every row. Errors: "usage" with the place and the next step.
expected<condition> parse_condition(const std::string& text, const condition_keys& keys);

/// The same over keys without flags.
expected<row_filter> parse_filter(const std::string& text, const std::vector<std::string>& keys);

/// Returns the key that `word` is or stands for. Errors: "usage", with the nearest one.
expected<std::string> known_key(const std::string& word, const condition_keys& keys);

/// Whether one row stands before another by a key's values; missing ones stand last, also when
/// `down`.
bool stands_before(const json& a, const json& b, const std::string& key, bool down);

/// Sorts rows by a key, "-KEY" the other way round; rows without the key stand last. Numbers within
/// texts count as such: g2 stands before g10. Errors: "usage".
expected<void> sort_rows(std::vector<json>& rows, const std::string& key,
                         const std::vector<std::string>& keys);

} // namespace kernelmill::watch
