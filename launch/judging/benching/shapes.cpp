#include "launch/judging/benching/shapes.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <set>

#include "messages/base/json_value.hpp"
#include "messages/base/suggest.hpp"
#include "messages/base/text.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill::benching {

namespace {

namespace fs = std::filesystem;

tl::unexpected<error> bad_shapes(const std::string& cause, std::string hint) {
  return configuration_error("usage", "failed to read --shapes: " + cause, std::move(hint));
}

std::vector<std::string> scalar_names(const task& x) {
  std::vector<std::string> result;
  for (const auto& arg : x.arguments)
    if (arg.role == argument_role::scalar) result.push_back(arg.name);
  return result;
}

// What may stand for a shape, besides scalars.
std::vector<std::string> shape_names(const task& x) {
  std::vector<std::string> result{"timed", "cases"};
  for (const auto& one : x.cases)
    if (!one.hidden) result.push_back(one.name);
  return result;
}

std::optional<std::vector<int64_t>> read_values(std::string_view text) {
  std::vector<int64_t> result;
  for (const auto& word : split(text, ':')) {
    int32_t value = 0;
    auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (problem != std::errc{} || end != word.data() + word.size()) return std::nullopt;
    result.push_back(value);
  }
  return result;
}

// "rows=128:256,cols=1024" as all that it combines to.
expected<std::vector<bench_shape>> read_scalars(const task& x, const std::string& word) {
  auto names = scalar_names(x);
  std::vector<bench_shape> result{{"", x.timed.scalars}};
  std::set<std::string> given;
  for (const auto& part : split(word, ',')) {
    auto equals = part.find('=');
    auto name = part.substr(0, equals);
    if (equals == part.npos || std::find(names.begin(), names.end(), name) == names.end())
      return bad_shapes("\"" + part + "\" names no scalar of " + x.id + did_you_mean(name, names),
                        "its scalars are " + joined(names));
    if (!given.insert(name).second)
      return bad_shapes("\"" + word + "\" gives " + name + " twice",
                        "write its values with ':' between, such as " + name + "=128:256");
    auto values = read_values(std::string_view{part}.substr(equals + 1));
    if (!values)
      return bad_shapes("\"" + part + "\" has no integers with ':' between",
                        "such as " + name + "=128:256");
    std::vector<bench_shape> more;
    for (const auto& one : result)
      for (auto value : *values) {
        if (more.size() > most_shapes) break; // which read_shapes() refuses
        more.push_back(one);
        more.back().scalars[name] = value;
      }
    result = std::move(more);
  }
  return result;
}

expected<std::vector<bench_shape>> read_word(const task& x, const std::string& word) {
  if (word == "timed") return std::vector<bench_shape>{{word, x.timed.scalars}};
  std::vector<bench_shape> result;
  for (const auto& one : x.cases)
    if (!one.hidden && (word == "cases" || word == one.name))
      result.push_back({one.name, one.scalars});
  if (!result.empty()) return result;
  if (word.find('=') != word.npos) return read_scalars(x, word);
  auto names = shape_names(x);
  return bad_shapes("there is no shape \"" + word + "\"" + did_you_mean(word, names),
                    "there are " + joined(names) + ", and scalars, such as " +
                        joined(scalar_names(x), "=N,") + "=N");
}

tl::unexpected<error> not_written(const std::string& path) {
  return infrastructure_error("io_error", "failed to write " + path,
                              "check space and rights of the folder for temporary files");
}

// The same document with another timed shape.
expected<void> write_document(const task& x, const scalar_values& scalars,
                              const std::string& path) {
  auto text = read_in_folder(x.directory, "task.json");
  // It was read before, so it is a document.
  auto document = nlohmann::ordered_json::parse(text.value_or("{}"), nullptr, false, true);
  const char* timed = x.terms.backend == "cpu" ? "timed" : "timed_gpu";
  if (!document.is_object() || !document.contains(timed))
    return configuration_error("task_changed", "failed to read " + x.directory + "/task.json again",
                               "try again");
  for (const auto& [name, value] : scalars) document[timed]["scalars"][name] = value;
  std::error_code gone;
  fs::remove(path, gone); // its copy may be read-only
  std::ofstream out{path, std::ios::trunc};
  out << document.dump(2) << '\n';
  out.close();
  return out ? expected<void>{} : not_written(path);
}

} // namespace

expected<std::vector<bench_shape>> read_shapes(const task& x, const std::string& text) {
  std::vector<bench_shape> result;
  auto words = text;
  std::replace(words.begin(), words.end(), ';', ' ');
  for (const auto& word : split(words, ' ')) {
    if (word.empty()) continue;
    auto more = read_word(x, word);
    KM_TRY(more);
    for (auto& one : *more) {
      bool known = std::any_of(result.begin(), result.end(),
                               [&](const auto& other) { return other.scalars == one.scalars; });
      if (!known) result.push_back(std::move(one));
    }
  }
  if (result.empty()) return bad_shapes("it names none", "leave it out for the task's own shapes");
  if (result.size() > most_shapes)
    return bad_shapes("they are more than " + std::to_string(most_shapes), "name fewer");
  return result;
}

expected<task_ptr> at_shape(const task_ptr& x, const scalar_values& scalars,
                            const std::string& root) {
  if (scalars == x->timed.scalars) return x;
  auto folder = fs::path{root} / x->id; // whose end must be the id
  std::error_code problem;
  fs::create_directories(folder, problem); // a copy of the folder might be read-only
  // Links stay links: what one leads to outside of the folder is no file of the task.
  auto how = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
  fs::copy(x->directory, folder, how, problem);
  if (problem) return not_written(folder.string());
  KM_TRY(write_document(*x, scalars, (folder / "task.json").string()));
  auto loaded = load_task_folder(folder.string());
  if (!loaded) {
    auto why = loaded.error();
    if (why.cls == fault_class::infrastructure) return tl::unexpected<error>{std::move(why)};
    // The task itself loads: the shape is wrong, not its document.
    auto document = "failed to read " + (folder / "task.json").string() + ": ";
    if (why.message.starts_with(document)) why.message.erase(0, document.size());
    auto good = shape_text(*x, x->timed.scalars);
    std::replace(good.begin(), good.end(), ' ', ',');
    return bad_shapes(x->id + " cannot have " + shape_text(*x, scalars) + ": " + why.message,
                      "choose other values, such as " + good);
  }
  return on_terms(**loaded, x->terms);
}

} // namespace kernelmill::benching
