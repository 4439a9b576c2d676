#include "retrieval/search/leak_audit.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "retrieval/code/python_text.hpp"
#include "retrieval/code/reference_code.hpp"
#include "retrieval/guard/near_duplicates.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_form_bytes = 256 << 10;

class form_writer {
public:
  explicit form_writer(std::string_view code)
      : text_(read_python(code.substr(0, most_form_bytes))) {}

  std::string write() {
    mark_statements();
    find_names();
    for (uint32_t i = 0; i < text_.statements.size(); ++i) {
      if (left_out_[i]) continue;
      const auto& x = text_.statements[i];
      if (word(x.first) == "def")
        header(x);
      else
        for (auto at = x.first; at < x.last; ++at) put(x, at);
      result_ += '\n';
    }
    put_arguments();
    return std::move(result_);
  }

private:
  std::string_view word(uint32_t at) const {
    return at < text_.tokens.size() && text_.tokens[at].kind == python_kind::name
               ? text_.tokens[at].text
               : std::string_view{};
  }
  bool is(uint32_t at, std::string_view mark) const {
    return at < text_.tokens.size() && text_.tokens[at].kind == python_kind::mark &&
           text_.tokens[at].text == mark;
  }

  void mark_statements() {
    left_out_.assign(text_.statements.size(), false);
    for (uint32_t i = 0; i < text_.statements.size(); ++i) {
      const auto& x = text_.statements[i];
      auto first = word(x.first);
      bool texts_alone =
          std::all_of(text_.tokens.begin() + x.first, text_.tokens.begin() + x.last,
                      [](const python_token& token) { return token.kind == python_kind::text; });
      bool made_inputs = first == "def" && word(x.first + 1).starts_with("get_");
      bool constant = x.indent == 0 && first != "def" && first != "class";
      if (texts_alone || first == "import" || first == "from" || first == "assert" || constant)
        left_out_[i] = true;
      if (made_inputs || (constant && x.end > i + 1))
        for (auto inner = i; inner < x.end; ++inner) left_out_[inner] = true;
    }
  }

  /// What get_init_inputs gives the model, with the constants that it names in their places: a
  /// kernel's size is no size of an input.
  void put_arguments() {
    std::map<std::string_view, const python_statement*> constants;
    for (const auto& x : text_.statements)
      if (x.indent == 0 && is(x.first + 1, "=")) constants[word(x.first)] = &x;
    for (uint32_t i = 0; i < text_.statements.size(); ++i) {
      const auto& x = text_.statements[i];
      if (word(x.first) != "def" || word(x.first + 1) != "get_init_inputs") continue;
      for (auto inner = i + 1; inner < x.end; ++inner)
        for (auto at = text_.statements[inner].first; at < text_.statements[inner].last; ++at) {
          auto constant = constants.find(word(at));
          if (constant == constants.end() || word(at).empty())
            put_plain(at);
          else
            for (auto in = constant->second->first + 2; in < constant->second->last; ++in)
              put_plain(in);
        }
    }
  }

  void define(std::string_view name) {
    if (!name.empty() && name != "self" && name != "forward" && !name.starts_with("__"))
      defined_.insert(name);
  }

  void find_names() {
    for (uint32_t i = 0; i < text_.statements.size(); ++i) {
      const auto& x = text_.statements[i];
      auto first = word(x.first);
      if (first == "def" || first == "class") {
        define(word(x.first + 1));
        for (auto at = x.first + 2; first == "def" && at < x.last; ++at)
          if (is(at - 1, "(") || is(at - 1, ",") || is(at - 1, "*")) define(word(at));
        continue;
      }
      auto equals = x.first;
      while (equals < x.last && !is(equals, "=") && !is(equals, "+=")) ++equals;
      auto to = first == "for" ? x.last : equals < x.last ? equals : x.first;
      for (auto at = x.first + (first == "for" ? 1 : 0); at < to && word(at) != "in"; ++at) {
        bool field = at >= 2 && is(at - 1, ".") && word(at - 2) == "self";
        if (field || !is(at - 1, ".")) define(word(at));
        if (is(at, "[") || is(at, "(")) at = std::max(at, std::min(text_.tokens[at].match, to));
      }
    }
  }

  /// `def f(x: torch.Tensor, y: int = 3) -> torch.Tensor:` without annotations.
  void header(const python_statement& x) {
    for (auto at = x.first; at < x.last && !is(at, "->"); ++at) {
      if (is(at, ":")) {
        while (at + 1 < x.last && !is(at + 1, ",") && !is(at + 1, "=") && !is(at + 1, ")") &&
               !is(at + 1, "->")) {
          ++at;
          if (text_.tokens[at].match > at) at = std::min(text_.tokens[at].match, x.last - 1);
        }
        continue;
      }
      put_header(at);
    }
  }
  void put_header(uint32_t at) {
    auto name = word(at);
    if (name.empty())
      put_plain(at);
    else
      put_name(name, defined_.contains(name));
  }

  void put(const python_statement& x, uint32_t& at) {
    auto name = word(at);
    if (name.empty()) return put_plain(at);
    if (name == "super" && is(at + 1, "(")) at = std::min(text_.tokens[at + 1].match, x.last - 1);
    bool behind_dot = at > x.first && is(at - 1, ".");
    bool of_self = behind_dot && at >= 2 && word(at - 2) == "self";
    bool named = is(at + 1, "=") && at > x.first && (is(at - 1, ",") || is(at - 1, "("));
    put_name(name, !named && (!behind_dot || of_self) && defined_.contains(name));
  }

  void put_name(std::string_view name, bool renamed) {
    if (!renamed) {
      result_.append(name).append(" ");
      return;
    }
    auto number = numbers_.try_emplace(name, numbers_.size()).first->second;
    result_.append("$").append(std::to_string(number)).append(" ");
  }

  void put_plain(uint32_t at) {
    const auto& token = text_.tokens[at];
    if (token.kind == python_kind::text)
      result_.append(token.text).append("\" ");
    else if (token.kind == python_kind::number && token.text.size() > 1 &&
             token.text.find('.') == token.text.npos &&
             (token.text.size() > 2 || token.text >= "32"))
      result_ += "# ";
    else if (!(is(at, ",") && (is(at + 1, ")") || is(at + 1, "]")))) // f(x,)
      result_.append(token.text).append(" ");
  }

  python_text text_;
  std::vector<bool> left_out_;
  std::set<std::string_view> defined_;
  std::map<std::string_view, size_t> numbers_;
  std::string result_;
};

/// What an audit compares of each entry, made when it is first among results.
struct entry_facts {
  std::vector<std::string> forms;
  std::vector<std::string> signatures;
  shingle_set shingles;
};

entry_facts facts_of(const index_entry& x) {
  entry_facts result;
  if (x.kind == "kernel")
    for (auto code : {x.reference.view(), x.text.view()}) {
      if (auto form = normal_form(code); !form.empty()) result.forms.push_back(std::move(form));
      if (!is_torch_code(code)) continue;
      if (auto own = read_reference(code).signature; !own.empty())
        result.signatures.push_back(std::move(own));
    }
  result.shingles = shingles_of_code(x.text);
  return result;
}

struct problem_facts {
  std::string name, form, signature;
  std::vector<shingle_set> solutions;
};

std::string why_it_solves(const audit_problem& problem, const problem_facts& p,
                          const index_entry& entry, const entry_facts& e) {
  if (!entry.task.empty() &&
      (entry.task == problem.task || (!p.name.empty() && p.name == problem_name(entry.task))))
    return "task";
  if (!p.form.empty() && std::find(e.forms.begin(), e.forms.end(), p.form) != e.forms.end())
    return "normal_form";
  auto has_operators = [&](const std::string& x) {
    return operators_of(x) == operators_of(p.signature);
  };
  if (!p.signature.empty() && std::any_of(e.signatures.begin(), e.signatures.end(), has_operators))
    return "operators";
  for (const auto& solution : p.solutions)
    if (near_duplicate(solution, e.shingles)) return "solution";
  return {};
}

} // namespace

std::string normal_form(std::string_view code) {
  return is_torch_code(code) ? form_writer{code}.write() : std::string{};
}

expected<leak_report> audit_leaks(const loaded_index& index,
                                  const std::vector<audit_problem>& problems, bool guarded,
                                  size_t nearest) {
  leak_report report;
  report.problems = problems.size();
  std::map<std::string, entry_facts> known;
  for (const auto& problem : problems) {
    retrieval_query query;
    query.text = problem.text.empty() ? problem.reference : problem.text;
    query.reference = problem.reference;
    query.count = nearest;
    if (guarded) query.exclude_task = problem.task;
    auto answer = index.query(query);
    KM_TRY(answer);
    report.results += answer->results.size();
    report.withheld += answer->withheld;
    problem_facts p{problem_name(problem.task), normal_form(problem.reference), {}, {}};
    if (is_torch_code(problem.reference)) p.signature = read_reference(problem.reference).signature;
    for (const auto& text : problem.solutions) p.solutions.push_back(shingles_of_code(text));
    for (size_t i = 0; i < answer->results.size(); ++i) {
      const auto& entry = answer->results[i].entry;
      auto facts = known.find(entry.id);
      if (facts == known.end()) facts = known.emplace(entry.id, facts_of(entry)).first;
      if (auto why = why_it_solves(problem, p, entry, facts->second); !why.empty())
        report.leaks.push_back({problem.task, entry.id, i + 1, std::move(why)});
    }
  }
  return report;
}

duplicate_count count_duplicates(const loaded_index& index) {
  duplicate_count result;
  std::unordered_set<std::string_view> texts;
  near_duplicates known;
  for (size_t i = 0; i < index.size(); ++i) {
    const auto& entry = index.entry(i);
    if (entry.kind != "kernel" || !index.may_show(i)) continue;
    if (!texts.insert(entry.text.view()).second) {
      ++result.exact;
      continue;
    }
    auto code = shingles_of_code(entry.text);
    if (known.find(code)) ++result.near;
    known.add(std::move(code), entry.id);
  }
  return result;
}

} // namespace kernelmill
