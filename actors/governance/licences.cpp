#include "actors/governance/licences.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

using licence_json = nlohmann::json;

const std::vector<std::string> licence_keys = {
    "schema_version", "source", "title", "match",     "digests", "models", "licence", "url",
    "since",          "terms",  "note",  "confirmed", "allows"};

tl::unexpected<error> bad_licence(const std::string& file, const std::string& cause,
                                  std::string hint = {}) {
  return configuration_error("bad_licence", "failed to read " + file + ": " + cause,
                             std::move(hint));
}

bool is_source_name(const std::string& x) {
  return !x.empty() && std::all_of(x.begin(), x.end(), [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '-' || c == '_' || c == '.';
  });
}

bool is_date(const std::string& x) {
  if (x.size() != 10) return false;
  for (size_t i = 0; i < x.size(); ++i)
    if (i == 4 || i == 7 ? x[i] != '-' : std::isdigit(static_cast<unsigned char>(x[i])) == 0)
      return false;
  return true;
}

class licence_reader {
public:
  licence_reader(const licence_json& from, const std::string& file) : from_(from), file_(file) {}

  expected<void> text(const char* key, std::string& into, bool needed) const {
    if (!from_.contains(key)) {
      if (needed) return bad_licence(file_, fmt::format("the key \"{}\" is missing", key));
      return {};
    }
    const auto& x = from_[key];
    if (!x.is_string()) return bad_licence(file_, fmt::format("\"{}\" must be a text", key));
    into = x.get<std::string>();
    if (needed && into.empty())
      return bad_licence(file_, fmt::format("\"{}\" must not be empty", key));
    return {};
  }

  expected<void> texts(const char* key, std::vector<std::string>& into) const {
    if (!from_.contains(key)) return {};
    const auto& x = from_[key];
    if (!x.is_array() || !std::all_of(x.begin(), x.end(), [](const auto& one) {
          return one.is_string() && !one.template get_ref<const std::string&>().empty();
        }))
      return bad_licence(file_, fmt::format("\"{}\" must be a list of texts", key));
    into = x.get<std::vector<std::string>>();
    return {};
  }

  expected<void> allows(licence& into) const {
    if (!from_.contains("allows") || !from_["allows"].is_object())
      return bad_licence(file_, "the key \"allows\" must be an object",
                         R"(such as {"evaluate": true, "train": "terms", "share": false})");
    const auto& x = from_["allows"];
    for (const auto& [key, unused] : x.items())
      if (std::none_of(all_purposes.begin(), all_purposes.end(),
                       [&key = key](purpose p) { return key == to_string(p); }))
        return bad_licence(file_, "unknown key \"allows." + key + "\"",
                           "there are: evaluate, train, share");
    for (auto p : all_purposes) {
      auto key = fmt::format("allows.{}", to_string(p));
      // What a licence does not speak of must not be guessed.
      if (!x.contains(to_string(p)))
        return bad_licence(file_, "the key \"" + key + "\" is missing");
      const auto& value = x[to_string(p)];
      if (!value.is_boolean() && value != "terms")
        return bad_licence(file_, "\"" + key + "\" must be true, false or \"terms\"");
      auto& to = into.allows[static_cast<size_t>(p)];
      to = value == "terms" ? allowance::on_terms : value == true ? allowance::yes : allowance::no;
      if (to == allowance::on_terms && into.terms.empty())
        return bad_licence(file_, "\"" + key + "\" is \"terms\", and no \"terms\" are named",
                           R"(name them: "terms": "researcher-reciprocity-1.0")");
    }
    return {};
  }

private:
  const licence_json& from_;
  const std::string& file_;
};

expected<void> check_words(const licence& x, const std::string& file) {
  if (!is_source_name(x.source))
    return bad_licence(file, "\"source\" takes small letters, digits, '-', '_' and '.', not \"" +
                                 x.source + "\"");
  if (!x.since.empty() && !is_date(x.since))
    return bad_licence(file, "\"since\" must be a date such as 2026-06-09");
  if (!x.confirmed.empty() && !is_date(x.confirmed))
    return bad_licence(file, "\"confirmed\" must be a date such as 2026-11-24");
  for (const auto& digest : x.digests)
    if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != digest.npos)
      return bad_licence(file, "\"digests\" takes SHA-256 as 64 hex digits, not \"" + digest + "\"",
                         "`kernelmill task show ID --json` prints a task's digest");
  return {};
}

// The strictest first.
bool says_less(const licence* a, const licence* b, purpose wanted) {
  return a->of(wanted) < b->of(wanted);
}

/// Whether `x` is `other` with the date on which a user read the licence.
bool confirms(const licence& x, licence other) {
  if (x.confirmed.empty() || !other.confirmed.empty()) return false;
  other.confirmed = x.confirmed;
  return x == other;
}

bool fits(const std::string& glob, const std::string& name) {
  return ::fnmatch(glob.c_str(), name.c_str(), FNM_CASEFOLD) == 0;
}

const char* verb_of(purpose x) noexcept {
  switch (x) {
    case purpose::evaluate: return "be evaluated";
    case purpose::train: return "be trained on";
    case purpose::share: break;
  }
  return "be passed on";
}

licence_decision undecided(const origin_facts& what, purpose wanted) {
  licence_decision result;
  result.source = what.source;
  if (wanted == purpose::evaluate) {
    result.allowed = true;
    return result;
  }
  result.reason =
      what.source.empty()
          ? fmt::format("nothing says whether {} may {}", what.id, verb_of(wanted))
          : fmt::format("{} names the source \"{}\", and no file of licences describes it", what.id,
                        what.source);
  result.hint = fmt::format(
      "name its `source` in task.json (\"own\": your own work) before the run, or describe the "
      "source in ~/.local/share/kernelmill/licences/NAME.json with \"match\": [\"{}\"]",
      what.id);
  return result;
}

} // namespace

const char* to_string(purpose x) noexcept {
  switch (x) {
    case purpose::evaluate: return "evaluate";
    case purpose::train: return "train";
    case purpose::share: break;
  }
  return "share";
}

expected<licence> parse_licence(const std::string& text, const std::string& file) {
  licence_json document;
  try {
    document = licence_json::parse(text, nullptr, true, true);
  } catch (const licence_json::parse_error& x) {
    auto line = 1 + std::count(text.begin(),
                               text.begin() + static_cast<std::ptrdiff_t>(
                                                  std::min<size_t>(x.byte, text.size())),
                               '\n');
    return bad_licence(fmt::format("{}:{}", file, line), "it is no JSON", "correct the text there");
  } catch (const licence_json::out_of_range&) {
    return bad_licence(file, "a number in it is too large");
  }
  if (!document.is_object()) return bad_licence(file, "it must hold an object");
  for (const auto& [key, unused] : document.items())
    if (std::find(licence_keys.begin(), licence_keys.end(), key) == licence_keys.end())
      return bad_licence(file, "unknown key \"" + key + "\"",
                         fmt::format("there are: {}", fmt::join(licence_keys, ", ")));
  if (document.value("schema_version", licence_json{}) != 1)
    return bad_licence(file, "\"schema_version\" must be 1");
  licence result;
  licence_reader from{document, file};
  KM_TRY(from.text("source", result.source, true));
  KM_TRY(from.text("title", result.title, true));
  KM_TRY(from.text("licence", result.name, true));
  KM_TRY(from.text("url", result.url, false));
  KM_TRY(from.text("since", result.since, false));
  KM_TRY(from.text("terms", result.terms, false));
  KM_TRY(from.text("note", result.note, false));
  KM_TRY(from.texts("match", result.match));
  KM_TRY(from.texts("digests", result.digests));
  KM_TRY(from.texts("models", result.models));
  KM_TRY(from.text("confirmed", result.confirmed, false));
  KM_TRY(from.allows(result));
  KM_TRY(check_words(result, file));
  return result;
}

expected<licence_table> licence_table::of(std::vector<licence> all) {
  std::sort(all.begin(), all.end(),
            [](const licence& a, const licence& b) { return a.source < b.source; });
  for (size_t i = 1; i < all.size();)
    if (all[i].source != all[i - 1].source)
      ++i;
    else if (confirms(all[i], all[i - 1]))
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    else if (confirms(all[i - 1], all[i]))
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    else
      return configuration_error(
          "bad_licence",
          "failed to read the licences: two files describe the source \"" + all[i].source + "\"",
          "give yours another \"source\"; what ships with Kernelmill cannot be replaced, and a "
          "file that confirms it differs in nothing but \"confirmed\"");
  licence_table result;
  result.all_ = std::move(all);
  return result;
}

const licence* licence_table::find(const std::string& source) const {
  auto i =
      std::find_if(all_.begin(), all_.end(), [&](const licence& x) { return x.source == source; });
  return i == all_.end() ? nullptr : &*i;
}

std::vector<const licence*> licence_table::of_task(const origin_facts& x) const {
  std::vector<const licence*> result;
  for (const auto& one : all_) {
    bool by_id = std::any_of(one.match.begin(), one.match.end(),
                             [&](const std::string& glob) { return fits(glob, x.id); });
    bool by_digest = !x.digest.empty() && std::find(one.digests.begin(), one.digests.end(),
                                                    x.digest) != one.digests.end();
    if (by_id || by_digest || (!x.source.empty() && one.source == x.source)) result.push_back(&one);
  }
  return result;
}

expected<void> licence_table::check_terms(const std::set<std::string>& accepted) const {
  std::set<std::string> known;
  for (const auto& x : all_)
    if (!x.terms.empty()) known.insert(x.terms);
  for (const auto& x : accepted)
    if (!known.contains(x))
      return configuration_error("unknown_terms",
                                 "failed to accept the terms \"" + x + "\": no source has them",
                                 fmt::format("there are: {}", fmt::join(known, ", ")));
  return {};
}

std::vector<const licence*> licence_table::of_answers(const std::string& model,
                                                      const std::string& named) const {
  std::vector<const licence*> result;
  for (const auto& one : all_)
    if (one.source == named ||
        std::any_of(one.models.begin(), one.models.end(),
                    [&](const std::string& glob) { return fits(glob, model); }))
      result.push_back(&one);
  return result;
}

namespace {

/// By the strictest. REQUIRES: there is one
licence_decision decide_among(const std::vector<const licence*>& found, const std::string& what,
                              purpose wanted, const std::set<std::string>& accepted) {
  const auto& least =
      **std::min_element(found.begin(), found.end(), [&](const licence* a, const licence* b) {
        return says_less(a, b, wanted);
      });
  licence_decision result;
  result.source = least.source;
  result.licence = least.name;
  result.url = least.url;
  result.confirmed = !least.confirmed.empty();
  auto allows = least.of(wanted);
  if (allows == allowance::on_terms) result.terms = least.terms;
  result.allowed =
      allows == allowance::yes || (allows == allowance::on_terms && accepted.contains(least.terms));
  // The terms of all licences must be accepted.
  for (const auto* x : found)
    if (result.allowed && x->of(wanted) == allowance::on_terms && !accepted.contains(x->terms)) {
      result.allowed = false;
      result.terms = x->terms;
    }
  if (result.allowed) return result;
  if (!result.confirmed && wanted != purpose::evaluate) {
    result.reason = fmt::format("{} is of {}, whose licence ({}) is unconfirmed: it must not {}",
                                what, least.title, least.name, verb_of(wanted));
    result.hint = fmt::format(
        "read {}; then copy its file {}.json to ~/.local/share/kernelmill/licences and add "
        "\"confirmed\" with the date",
        least.url.empty() ? "the licence" : least.url, least.source);
    return result;
  }
  auto since = least.since.empty() ? std::string{} : " since " + least.since;
  result.reason =
      fmt::format("{} is of {}, which must not {}{}{} ({})", what, least.title, verb_of(wanted),
                  since, result.terms.empty() ? "" : " without its terms", least.name);
  result.hint = result.terms.empty()
                    ? "no terms that are accepted change that; " +
                          (least.url.empty() ? "leave its tasks out" : "see " + least.url)
                    : fmt::format("read {} and add --accept-terms {}",
                                  least.url.empty() ? "its terms" : least.url, result.terms);
  return result;
}

} // namespace

licence_decision decide(const licence_table& table, const origin_facts& what, purpose wanted,
                        const std::set<std::string>& accepted) {
  auto found = table.of_task(what);
  // An id that fits does not replace a description of the source.
  if (found.empty() || (!what.source.empty() && table.find(what.source) == nullptr))
    if (found.empty() || wanted != purpose::evaluate) return undecided(what, wanted);
  return decide_among(found, what.id, wanted, accepted);
}

std::optional<licence_decision> decide_answers(const licence_table& table, const std::string& model,
                                               const std::string& named, purpose wanted,
                                               const std::set<std::string>& accepted) {
  auto found = table.of_answers(model, named);
  if (found.empty()) return std::nullopt;
  return decide_among(found, "an answer by " + (model.empty() ? "this model" : model), wanted,
                      accepted);
}

} // namespace kernelmill
