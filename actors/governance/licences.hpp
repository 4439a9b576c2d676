#pragma once

// What may be done with a task or a model's answer: plain functions on plain values. A file of
// configs/licences says what the licence of one source allows. A decision depends on a task's id,
// digest and source, on the purpose, and on the terms that the user has accepted. The strictest
// licence counts: neither another id nor a source that is named besides lifts what it forbids.

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

/// To measure models and kernels; to train on what was made of it; to pass it on.
enum class purpose : unsigned char { evaluate, train, share };
inline constexpr std::array all_purposes = {purpose::evaluate, purpose::train, purpose::share};

/// "evaluate", "train", "share": the keys of `allows`.
const char* to_string(purpose x) noexcept;

/// `on_terms`: once the terms that the licence names are accepted.
enum class allowance : unsigned char { no, on_terms, yes };

struct licence {
  std::string source;               ///< "kernelbench": what a task names
  std::string title;                ///< for people
  std::vector<std::string> match;   ///< globs of ids of tasks
  std::vector<std::string> digests; ///< of tasks, whatever their ids
  std::vector<std::string> models;  ///< globs of names of models whose answers are of this source
  std::string name;                 ///< SPDX's where there is one
  std::string url;
  std::string since;     ///< a date; empty: from the first
  std::string terms;     ///< the id of what is to be accepted; empty: nothing can be
  std::string note;      ///< one sentence: where the limits come from
  std::string confirmed; ///< the date on which a user read the licence at `url`; empty: unread
  std::array<allowance, 3> allows{};

  /// Hearsay allows to evaluate, and nothing else.
  allowance of(purpose x) const {
    return confirmed.empty() && x != purpose::evaluate ? allowance::no
                                                       : allows[static_cast<size_t>(x)];
  }

  bool operator==(const licence&) const = default;
};

/// Reads one file of configs/licences. Errors: "bad_licence", with file and key.
expected<licence> parse_licence(const std::string& text, const std::string& file);

/// What is known of a task, or of a retrieved example.
struct origin_facts {
  std::string id;
  std::string digest; ///< may be empty
  std::string source; ///< that it names; may be empty
};

struct licence_decision {
  bool allowed = false;
  std::string source;  ///< that decided; empty: none is known
  std::string licence; ///< its name
  std::string url;
  std::string terms;     ///< that this use needs, accepted or not
  std::string reason;    ///< why not
  std::string hint;      ///< what can be done about it
  bool confirmed = true; ///< a user has read the licence
};

class licence_table {
public:
  /// A file that repeats another and adds the date on which a user read the licence replaces it.
  /// Errors: "bad_licence" (two files describe one source).
  static expected<licence_table> of(std::vector<licence> all);

  const std::vector<licence>& all() const { return all_; }
  const licence* find(const std::string& source) const;

  /// The licences that a task falls under, by its source, id and digest.
  std::vector<const licence*> of_task(const origin_facts& x) const;

  /// The licences that a model's answers fall under, by its name and by the source that a
  /// configuration names as its licence.
  std::vector<const licence*> of_answers(const std::string& model, const std::string& named) const;

  /// Errors: "unknown_terms", for ids that no licence asks for.
  expected<void> check_terms(const std::set<std::string>& accepted) const;

private:
  std::vector<licence> all_;
};

/// A task of which nothing is known may be measured, and nothing else.
licence_decision decide(const licence_table& table, const origin_facts& what, purpose wanted,
                        const std::set<std::string>& accepted);

/// Of a model's answers, by its name and by the source that `policy.licence` may name. Nothing: no
/// file speaks of it, and the answers belong to the owner of the model.
std::optional<licence_decision> decide_answers(const licence_table& table, const std::string& model,
                                               const std::string& named, purpose wanted,
                                               const std::set<std::string>& accepted);

} // namespace kernelmill
