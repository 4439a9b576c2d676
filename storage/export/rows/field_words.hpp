#pragma once

// INTERNAL to storage/export: the words in which fields of forms are written down, and what forms
// of ours and of trainers share.

#include <string>
#include <utility>
#include <vector>

#include "storage/export/rows/forms.hpp"

namespace kernelmill::exports::field_words {

using fields = std::vector<field>;

inline const type text{"string", {}};
inline const type flag{"bool", {}};
inline const type id{"int32", {}};
inline const type integer{"int64", {}};
inline const type real{"float64", {}};
inline const type real32{"float32", {}};

inline type list_of(type item) {
  return {"list", {{"", std::move(item), "", false}}};
}

inline type record(fields members) {
  return {"record", std::move(members)};
}

/// One that is always there.
inline field f(std::string name, type of, std::string doc) {
  return {std::move(name), std::move(of), std::move(doc), false};
}

/// One that may be null.
inline field n(std::string name, type of, std::string doc) {
  return {std::move(name), std::move(of), std::move(doc), true};
}

inline fields operator+(fields a, const fields& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Of a message, where tools were called natively.
inline fields tool_fields() {
  auto function = record({f("name", text, "of the tool"), f("arguments", text, "JSON, as text")});
  auto call = record({f("id", text, "of the call"), f("type", text, "`function`"),
                      f("function", function, "what was called")});
  return {n("tool_calls", list_of(call), "of an `assistant` that called tools natively"),
          n("tool_call_id", text, "of the role `tool`: the call that it answers")};
}

inline type messages() {
  return list_of(record(fields{f("role", text, "`system`, `user`, `assistant` or `tool`"),
                               f("content", text, "as the model read or wrote it")} +
                        tool_fields()));
}

inline const field model = f("model", text, "that wrote the answer");

} // namespace kernelmill::exports::field_words
