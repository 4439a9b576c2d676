#include "launch/learning/training/train_config.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "launch/config/json_text.hpp"
#include "launch/config/paths.hpp"
#include "messages/base/suggest.hpp"

namespace kernelmill::training {

namespace {

using raw = nlohmann::json;
namespace fs = std::filesystem;

constexpr double most_steps = 1e9, most_groups = 65536, most_episodes = 4096;

/// One object of the file. It knows which keys were asked for, and what the others are.
class section {
public:
  section(const json_text& text, const raw& value, std::string path)
      : text_(text), value_(value), path_(std::move(path)) {}

  expected<void> text(const char* key, std::string& to) {
    return take(key, to, "a text", &raw::is_string);
  }
  expected<void> flag(const char* key, bool& to) {
    return take(key, to, "true or false", &raw::is_boolean);
  }
  expected<void> object(const char* key, raw& to) {
    return take(key, to, "an object", &raw::is_object);
  }
  expected<void> whole(const char* key, uint64_t& to, double low, double high) {
    KM_TRY(within(key, low, high, true));
    return take(key, to, "a whole number", &raw::is_number_integer);
  }
  expected<void> number(const char* key, double& to, double low, double high) {
    KM_TRY(within(key, low, high, false));
    return take(key, to, "a number", &raw::is_number);
  }
  expected<void> texts(const char* key, std::vector<std::string>& to) {
    return list(key, to, "a list of texts", [](const raw& x) { return x.is_string(); });
  }
  expected<void> numbers(const char* key, std::vector<double>& to) {
    return list(key, to, "a list of numbers from 0 on",
                [](const raw& x) { return x.is_number() && x.get<double>() >= 0; });
  }
  expected<void> counts(const char* key, std::vector<uint64_t>& to) {
    return list(key, to, "a list of whole numbers from 1 on",
                [](const raw& x) { return x.is_number_unsigned() && x.get<uint64_t>() >= 1; });
  }
  /// The raw value, for callers that parse it themselves; null: there is none.
  const raw* other(const char* key) {
    known_.emplace_back(key);
    return value_.contains(key) ? &value_[key] : nullptr;
  }

  /// Nothing but what was asked for stands there.
  expected<void> end() const {
    for (const auto& [key, x] : value_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        return configuration_error("config_unknown_key",
                                   where(key) + "there is no key '" + path_ + key + "'" +
                                       did_you_mean(key, known_),
                                   "docs/reference/training.md lists the keys");
    return {};
  }

  tl::unexpected<error> wrong(const std::string& key, const std::string& takes,
                              const char* category = "config_wrong_type") const {
    return configuration_error(category, where(key) + "'" + path_ + key + "' takes " + takes,
                               "docs/reference/training.md says what each key takes");
  }
  std::string where(const std::string& key) const {
    auto at = text_.positions.find(path_ + key);
    return "failed to read " + text_.name +
           (at == text_.positions.end() ? "" : ":" + std::to_string(at->second.line)) + ": ";
  }

private:
  template <class T>
  expected<void> take(const char* key, T& to, const char* takes,
                      bool (raw::*fits)() const noexcept) {
    const auto* x = other(key);
    if (!x) return {};
    if (!(x->*fits)()) return wrong(key, takes);
    to = x->get<T>();
    return {};
  }
  template <class T, class Fits>
  expected<void> list(const char* key, std::vector<T>& to, const char* takes, Fits fits) {
    const auto* x = other(key);
    if (!x) return {};
    if (!x->is_array() || !std::all_of(x->begin(), x->end(), fits)) return wrong(key, takes);
    to = x->get<std::vector<T>>();
    return {};
  }
  expected<void> within(const char* key, double low, double high, bool is_whole) {
    if (!value_.contains(key) || !value_[key].is_number()) return {};
    auto x = value_[key].get<double>();
    if (x >= low && x <= high) return {};
    auto shown = [](double v) { return raw(static_cast<int64_t>(v)).dump(); };
    return wrong(key,
                 std::string{is_whole ? "a whole number" : "a number"} + " from " + shown(low) +
                     " to " + shown(high) + ", not " + value_[key].dump(),
                 "config_invalid_value");
  }

  const json_text& text_;
  const raw& value_;
  std::string path_;
  std::vector<std::string> known_;
};

const raw& part_of(const raw& all, const char* key) {
  static const raw none = raw::object();
  return all.contains(key) && all[key].is_object() ? all[key] : none;
}

std::string absolute_in(const std::string& directory, const std::string& path) {
  std::error_code code;
  if (path.empty()) return path;
  auto result = fs::absolute(fs::path{directory} / path, code).lexically_normal().string();
  if (result.size() > 1 && result.ends_with('/')) result.pop_back(); // of "."
  return result;
}

expected<void> read_parts(const json_text& text, section& top, train_config& to) {
  for (const char* key : {"tasks", "batch", "evaluation", "policy", "trainer"})
    if (const auto* x = top.other(key); x && !x->is_object()) return top.wrong(key, "an object");
  section tasks{text, part_of(text.value, "tasks"), "tasks."};
  KM_TRY(tasks.text("root", to.tasks_root));
  KM_TRY(tasks.texts("train", to.train));
  KM_TRY(tasks.texts("held_out", to.held_out));
  KM_TRY(tasks.texts("texts", to.texts));
  KM_TRY(tasks.end());
  section batch{text, part_of(text.value, "batch"), "batch."};
  KM_TRY(batch.whole("groups", to.groups, 1, most_groups));
  KM_TRY(batch.whole("group_size", to.group_size, 1, most_episodes));
  KM_TRY(batch.whole("rounds", to.rounds, 0, 1000));
  KM_TRY(batch.number("least_deviation", to.least_deviation, 0, 1000));
  KM_TRY(batch.number("thinking", to.thinking, -100, 100));
  KM_TRY(batch.flag("ahead", to.ahead));
  KM_TRY(batch.end());
  section evaluation{text, part_of(text.value, "evaluation"), "evaluation."};
  KM_TRY(evaluation.whole("every", to.evaluate_every, 0, most_steps));
  KM_TRY(evaluation.whole("samples", to.samples, 1, most_episodes));
  KM_TRY(evaluation.numbers("fast", to.fast));
  KM_TRY(evaluation.counts("pass", to.pass));
  KM_TRY(evaluation.end());
  section policy{text, part_of(text.value, "policy"), "policy."};
  KM_TRY(policy.texts("command", to.policy_command));
  KM_TRY(policy.text("weights", to.initial));
  KM_TRY(policy.text("version", to.initial_version));
  KM_TRY(policy.end());
  section trainer{text, part_of(text.value, "trainer"), "trainer."};
  KM_TRY(trainer.texts("command", to.trainer_command));
  KM_TRY(trainer.text("url", to.trainer_url));
  KM_TRY(trainer.whole("timeout_s", to.trainer_timeout_s, 1, 7 * 24 * 3600));
  KM_TRY(trainer.whole("keep", to.keep, 0, most_steps));
  KM_TRY(trainer.object("settings", to.settings));
  return trainer.end();
}

expected<void> read_stages(const json_text& text, section& top, train_config& to) {
  const auto* all = top.other("stages");
  if (!all) return {};
  if (!all->is_array()) return top.wrong("stages", "a list of objects");
  for (size_t i = 0; i < all->size(); ++i) {
    auto name = "stages[" + std::to_string(i) + "]";
    if (!(*all)[i].is_object()) return top.wrong("stages", "a list of objects");
    section one{text, (*all)[i], name + "."};
    stage x;
    KM_TRY(one.whole("from", x.from, 0, most_steps));
    KM_TRY(one.number("at_correct", x.at_correct, 0, 1));
    KM_TRY(one.texts("tasks", x.tasks));
    KM_TRY(one.texts("difficulties", x.difficulties));
    KM_TRY(one.texts("levels", x.levels));
    KM_TRY(one.object("run", x.run));
    KM_TRY(one.end());
    if (i > 0 && x.from < to.stages.back().from)
      return configuration_error("config_inconsistent",
                                 top.where("stages") + name +
                                     " begins before the one in front of it",
                                 "order the stages by `from`");
    to.stages.push_back(std::move(x));
  }
  return {};
}

expected<void> check_whole(const section& top, const train_config& x) {
  auto inconsistent = [&](const char* key, const std::string& what, std::string hint) {
    return configuration_error("config_inconsistent", top.where(key) + what, std::move(hint));
  };
  if (x.dir.empty())
    return inconsistent("dir", "'dir' is missing", "name a folder for what the training makes");
  if (x.steps == 0) return inconsistent("steps", "'steps' is missing", "say how many to take");
  if (x.train.empty())
    return inconsistent("tasks", "'tasks.train' names no task", "list ids or globs");
  if (x.evaluate_every > 0 && x.held_out.empty())
    return inconsistent("tasks", "'evaluation.every' is set and 'tasks.held_out' names no task",
                        "list ids or globs, or leave evaluation.every out");
  if (x.trainer_command.empty() && x.trainer_url.empty())
    return inconsistent("trainer", "'trainer' has neither a command nor a url",
                        "give the command that learns from a batch, or the url that takes one");
  if (x.keep == 1)
    return inconsistent("trainer",
                        "'trainer.keep' is 1, and a step that is repeated needs the one before",
                        "keep 2 or more, or 0 for all");
  const auto& policy = part_of(x.run, "policy");
  auto kind = policy.value("kind", raw{}), url = policy.value("base_url", raw{});
  if (!kind.is_string() || !url.is_string() || url == "")
    return inconsistent(
        "run", "'run.policy' has no kind and base_url",
        R"(such as {"kind": "vllm", "base_url": "http://127.0.0.1:8000/v1", "model": "m"})");
  if (kind != "vllm" && kind != "sglang" && x.policy_command.empty())
    return inconsistent("run",
                        "a policy server of kind " + kind.get<std::string>() +
                            " loads weights at its start only, and 'policy.command' is not given",
                        "give the command that serves {weights}, or use vllm or sglang");
  for (const char* key : {"run", "tasks", "storage"})
    if (x.run.contains(key) && (std::string{key} != "tasks" || x.run[key].contains("ids")))
      return inconsistent("run", "'run." + std::string{key} + "' is made by the training itself",
                          "leave it out; `tasks` and `dir` are keys of their own");
  return {};
}

/// "seed=3" and the like; no other key differs between two trainings of one file.
expected<void> override_with(raw& value, const std::string& word) {
  static const std::vector<std::string> known{"seed", "dir", "steps", "backend"};
  auto equal = word.find('=');
  auto key = word.substr(0, equal);
  if (equal == word.npos || std::find(known.begin(), known.end(), key) == known.end())
    return configuration_error("usage", "failed to run 'train': '" + word + "' is no setting of it",
                               "seed=N, dir=DIR, steps=N and backend=NAME may follow the file");
  auto text = word.substr(equal + 1);
  auto number = raw::parse(text, nullptr, false);
  value[key] = (key == "seed" || key == "steps") && number.is_number() ? number : raw(text);
  return {};
}

} // namespace

uint64_t train_config::max_turns() const {
  const auto& tasks = part_of(run, "tasks");
  return tasks.contains("max_turns") && tasks["max_turns"].is_number_unsigned()
             ? tasks["max_turns"].get<uint64_t>()
             : 1;
}

std::vector<std::string> training_presets() {
  std::vector<std::string> result;
  std::error_code code;
  for (fs::directory_iterator i{data_directory() + "/configs/training", code}, end;
       !code && i != end; i.increment(code))
    if (i->path().extension() == ".json") result.push_back(i->path().stem().string());
  std::sort(result.begin(), result.end());
  return result;
}

expected<train_config> read_train_config(const std::string& path,
                                         const std::vector<std::string>& overrides) {
  auto text = read_json_file(path);
  KM_TRY(text);
  if (!text->value.is_object())
    return configuration_error("config_wrong_type", "failed to read " + path + ": it is no object",
                               "docs/reference/training.md shows one");
  train_config result;
  std::error_code code;
  result.file = fs::absolute(path, code).lexically_normal().string();
  result.directory = fs::path{result.file}.parent_path().string();
  auto here = fs::current_path(code).string();
  bool dir_is_ours = false; // a path of the command line is relative to where it was typed
  for (const auto& word : overrides) {
    KM_TRY(override_with(text->value, word));
    dir_is_ours |= word.starts_with("dir=");
  }
  std::string preset;
  section naming{*text, text->value, ""};
  KM_TRY(naming.text("preset", preset));
  if (!preset.empty()) {
    auto known = training_presets();
    if (std::find(known.begin(), known.end(), preset) == known.end())
      return configuration_error("config_invalid_value",
                                 naming.where("preset") + "there is no preset '" + preset + "'" +
                                     did_you_mean(preset, known),
                                 "configs/training holds them");
    auto base = read_json_file(data_directory() + "/configs/training/" + preset + ".json");
    KM_TRY(base);
    base->value.merge_patch(text->value);
    text->value = std::move(base->value);
  }
  section top{*text, text->value, ""};
  KM_TRY(top.text("preset", preset));
  KM_TRY(top.text("dir", result.dir));
  KM_TRY(top.text("backend", result.backend));
  KM_TRY(top.whole("seed", result.seed, 0, 9e15));
  KM_TRY(top.whole("steps", result.steps, 1, most_steps));
  KM_TRY(top.object("run", result.run));
  KM_TRY(read_parts(*text, top, result));
  KM_TRY(read_stages(*text, top, result));
  KM_TRY(top.end());
  result.dir = absolute_in(dir_is_ours ? here : result.directory, result.dir);
  result.tasks_root = absolute_in(result.directory, result.tasks_root);
  result.initial = absolute_in(result.directory, result.initial);
  for (auto& x : result.texts) x = absolute_in(result.directory, x);
  KM_TRY(check_whole(top, result));
  return result;
}

} // namespace kernelmill::training
