#include "launch/server/page/stored_page.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "launch/analysis/library/best_over_runs.hpp"
#include "launch/server/page/documents.hpp"
#include "launch/server/page/routes.hpp"
#include "launch/server/page/summaries.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::page {

using watch::json;

namespace {

namespace fs = std::filesystem;

constexpr uint64_t all_rows = 10'000; // as many as one document has

class disk_writer {
public:
  disk_writer(const watch::world& in, fs::path folder, kept_runs& kept)
      : in_(in), folder_(std::move(folder)), kept_(kept) {}

  stored_page_counts counts;

  expected<void> put_text(const std::string& name, std::string_view text) {
    std::ofstream out{folder_ / name, std::ios::binary};
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.flush();
    if (!out)
      return infrastructure_error("io_error", "failed to write " + (folder_ / name).string(),
                                  "check the disk's room and the folder's rights");
    counts.bytes += text.size();
    return {};
  }

  /// What a server would answer at `path`, as a script.
  expected<void> put(const std::string& path, const json& x) {
    auto name = fmt::format("data/{}.js", files_.size());
    KM_TRY(put_text(name, "kernelmillStored.loaded[" + json(name).dump() + "](" +
                              x.dump(-1, ' ', false, json::error_handler_t::replace) + ");\n"));
    files_[path] = name;
    return {};
  }

  expected<json> ask(const char* id, std::map<std::string, std::string> parts,
                     const json& query = json::object()) const {
    return document_of(in_, id, std::move(parts), query, kept_);
  }

  expected<void> add_run(const std::string& run) {
    auto path = "/api/v1/runs/" + run;
    static const std::pair<const char*, const char*> plain[] = {
        {"run", ""}, {"positions", "/positions"}, {"config", "/config"}};
    for (const auto& [id, tail] : plain) {
      auto x = ask(id, {{"run", run}});
      KM_TRY(x);
      KM_TRY(put(path + tail, *x));
    }
    for (const char* id : {"tasks", "groups", "findings", "lanes"}) {
      auto x = ask(id, {{"run", run}}, {{"limit", all_rows}});
      KM_TRY(x);
      KM_TRY(put(path + "/" + id, *x));
    }
    if (auto search = ask("search", {{"run", run}}))
      KM_TRY(put(path + "/search", *search));
    else if (search.error().category != "not_found")
      return tl::unexpected<error>{search.error()};
    auto episodes = ask("episodes", {{"run", run}}, {{"limit", all_rows}});
    KM_TRY(episodes);
    KM_TRY(put(path + "/episodes", *episodes));
    for (const auto& row : (*episodes)["episodes"]) {
      std::string episode = row["id"];
      for (const char* id : {"episode", "lineage"}) {
        auto x = ask(id, {{"run", run}, {"episode", episode}});
        KM_TRY(x);
        std::string tail = std::string_view{id} == "lineage" ? "/lineage" : "";
        KM_TRY(put(path + "/episodes/" + episode + tail, *x));
      }
      ++counts.episodes;
    }
    ++counts.runs;
    return {};
  }

  /// The list of runs, and the best kernels of these with their code.
  expected<void> add_lists(const std::vector<std::string>& runs) {
    auto has = [&](const json& row) {
      return std::find(runs.begin(), runs.end(), row["name"]) != runs.end();
    };
    auto all = ask("runs", {}, {{"limit", all_rows}});
    KM_TRY(all);
    auto kept = json::array();
    for (const auto& row : (*all)["runs"])
      if (has(row)) kept.push_back(row);
    (*all)["runs"] = std::move(kept);
    KM_TRY(put("/api/v1/runs", *all));
    std::vector<std::vector<library::kernel>> kernels;
    for (const auto& name : runs) kernels.push_back(kernels_of(in_, name).best);
    std::vector<json> rows;
    for (const auto& x : library::best_over_runs(kernels)) {
      auto row = library::to_json(x);
      auto run = run_below(in_, row["name"]);
      KM_TRY(run);
      if (auto text = turn_text(in_, *run, x.turn, "candidate")) row["code"] = *text;
      rows.push_back(std::move(row));
    }
    auto document = paged(std::move(rows), {{"limit", all_rows}}, "kernels");
    document["unreadable"] = json::array();
    return put("/api/v1/kernels", document);
  }

  expected<void> add_files() {
    std::vector<module_text> modules;
    for (const auto& a : assets()) {
      std::string name = std::string_view{a.path}.substr(6).data();
      std::string text{reinterpret_cast<const char*>(a.bytes), a.size};
      bool module = name.ends_with(".js") && name != "highlight.js";
      if (module)
        modules.push_back({name, std::move(text)});
      else if (name == "index.html")
        KM_TRY(put_text(name, from_disk(std::move(text))));
      else
        KM_TRY(put_text("page/" + name, text));
    }
    auto script = one_script(modules);
    KM_TRY(script);
    KM_TRY(put_text("page/page.js", *script));
    return put_text("page/stored.js", "window.kernelmillStored = {files: " + files_.dump() +
                                          ", loaded: {}, waiting: {}};\n");
  }

private:
  static std::string from_disk(std::string html) {
    const std::pair<std::string_view, std::string_view> changes[] = {
        {R"(<script type="module" src="/page/app.js"></script>)",
         "<script defer src=\"page/stored.js\"></script>\n"
         "<script defer src=\"page/page.js\"></script>"},
        {"\"/page/", "\"page/"}};
    for (const auto& [from, to] : changes)
      for (auto at = html.find(from); at != html.npos; at = html.find(from, at + to.size()))
        html.replace(at, from.size(), to);
    return html;
  }

  const watch::world& in_;
  fs::path folder_;
  kept_runs& kept_;
  json files_ = json::object(); ///< by the path that a server has them at
};

expected<std::vector<std::string>> readable_runs(const watch::world& in, kept_runs& kept) {
  std::vector<std::string> result;
  for (const auto& name : list_runs(in.root))
    if (document_of(in, "run", {{"run", name}}, {}, kept)) result.push_back(name);
  if (result.empty())
    return configuration_error("not_found", "failed to find a run below " + in.root,
                               "name the folder that holds the runs, such as `runs`");
  return result;
}

} // namespace

expected<stored_page_counts> store_page(const watch::world& of, const std::string& folder,
                                        const std::vector<std::string>& runs,
                                        const std::function<void(const std::string&)>& before) {
  kept_runs kept{[] { return uint64_t{0}; }};
  auto in = with_kept(of, kept);
  auto chosen = runs.empty() ? readable_runs(in, kept) : expected<std::vector<std::string>>{runs};
  KM_TRY(chosen);
  for (const auto& name : *chosen) KM_TRY(run_below(in, name));
  std::error_code code;
  if (fs::exists(folder, code) && !fs::is_empty(folder, code))
    return configuration_error("directory_not_empty",
                               "failed to write " + folder + ": it is not empty",
                               "name a new folder");
  fs::create_directories(fs::path{folder} / "data", code);
  if (!code) fs::create_directories(fs::path{folder} / "page", code);
  if (code)
    return infrastructure_error("io_error", "failed to make " + folder + ": " + code.message(),
                                "check the folder's rights");
  disk_writer to{in, folder, kept};
  for (const auto& name : *chosen) {
    if (before) before(name);
    KM_TRY(to.add_run(name));
  }
  KM_TRY(to.add_lists(*chosen));
  KM_TRY(to.add_files());
  return to.counts;
}

} // namespace kernelmill::page
