#include <algorithm>

#include <fmt/format.h>

#include "gpu/task/task.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/torch_task_text.hpp"
#include "launch/commands/judge/workbench.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "launch/machine/python.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/judged.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

json program_head(const program_task& x) {
  json result = {{"build", x.build},
                 {"test", x.test},
                 {"benchmark", x.benchmark},
                 {"timing", to_string(x.timing.mode)},
                 {"timeout_s", x.timeout_s},
                 {"answer_file", x.answer_file},
                 {"writable", writable_files(x)},
                 {"references", {{"any", x.references.any}, {"all", x.references.all}}},
                 {"needs",
                  {{"toolkit", x.needs.toolkit},
                   {"compute_capability", x.needs.compute_capability},
                   {"datacenter_gpu", x.needs.datacenter_gpu}}}};
  for (auto [name, files] :
       {std::pair{"context", &x.context}, {"tests", &x.tests}, {"baseline", &x.baseline}})
    for (const auto& file : *files) result[name].push_back(file.path);
  return result;
}

json head(const task& x) {
  json result = {{"id", x.id},
                 {"title", x.title},
                 {"verb", x.verb},
                 {"operator_family", x.operator_family},
                 {"contract", to_string(x.contract)},
                 {"difficulty", x.difficulty},
                 {"backends", x.backends}};
  if (x.contract == contract_kind::torch) {
    add_torch_head(x.torch, result);
  } else if (x.contract == contract_kind::program) {
    result["suite"] = x.program.suite;
    result["suite_id"] = x.program.suite_id;
    result["group"] = x.program.group;
  } else {
    result["cases"] = x.cases.size();
  }
  return result;
}

json case_json(const task& x, const task_case& c) {
  return {{"name", c.name},
          {"shape", shape_text(x, c.scalars)},
          {"visibility", c.hidden ? "hidden" : "visible"},
          {"fills", c.fills}};
}

json change_json(const counter_change& x) {
  return {{"counter", x.counter},
          {"change", x.rises ? "rises" : "falls"},
          {"by", x.by},
          {"visibility", x.hidden ? "hidden" : "visible"}};
}

json full(const task& x) {
  auto result = head(x);
  result["digest"] = x.digest;
  result["directory"] = x.directory;
  if (!x.diagnoses.empty()) result["diagnoses"] = x.diagnoses;
  for (const auto& change : x.evidence) result["evidence"].push_back(change_json(change));
  for (const auto& change : x.strategy) result["strategy"].push_back(change_json(change));
  if (x.verb == "port") result["port"] = {{"from", x.port.from}, {"to", x.port.to}};
  if (!x.starter.empty()) result["starter"] = x.starter;
  if (x.contract == contract_kind::torch) {
    result["prompt"] = x.prompt;
    result["problem"] = x.torch.code;
    return result;
  }
  if (x.contract == contract_kind::program) {
    result["prompt"] = x.prompt;
    result["program"] = program_head(x.program);
    return result;
  }
  result["declaration"] = x.declaration();
  result["cases"] = json::array();
  for (const auto& c : x.cases) result["cases"].push_back(case_json(x, c));
  result["timed"] = shape_text(x, x.timed.scalars);
  result["tolerance"] = x.tolerance;
  result["bytes"] = x.bytes.text();
  result["flops"] = x.flops.text();
  result["prompt"] = x.prompt;
  return result;
}

std::string starter_text(const task& x, const std::string& name) {
  return x.starter.empty() ? std::string{} : "\n--- " + name + " ---\n" + x.starter;
}

std::string torch_text(const task& x, bool bold) {
  auto result = fmt::format("{}\n{}\n\n{}, {}, {}, contract torch, {}, backends {}\n{}\n{}\n{}{}\n"
                            "--- problem.py ---\n{}{}",
                            cli::paint(bold, cli::colour::bold, x.id), x.title, x.verb,
                            x.operator_family, x.difficulty, x.torch.precision, joined(x.backends),
                            x.directory, suite_text(x.torch), x.prompt, variants_text(x.torch),
                            x.torch.code, x.torch.code.ends_with("\n") ? "" : "\n");
  return result + starter_text(x, "starter.py");
}

std::string program_text(const task& x, bool bold) {
  const auto& p = x.program;
  auto result = fmt::format("{}\n{}\n\n{}, {}, {}, contract program, backends {}\n{}\n\n",
                            cli::paint(bold, cli::colour::bold, x.id), x.title, x.verb,
                            x.operator_family, x.difficulty, joined(x.backends), x.directory);
  std::vector<std::vector<std::string>> rows{{"build", p.build},
                                             {"test", p.test},
                                             {"benchmark", p.benchmark},
                                             {"timing", std::string{to_string(p.timing.mode)}},
                                             {"answers write", joined(writable_files(p))}};
  for (auto [folder, files] :
       {std::pair{"context", &p.context}, {"tests", &p.tests}, {"baseline", &p.baseline}})
    for (const auto& file : *files) rows.push_back({folder, file.path});
  result += cli::format_table({"PART", "VALUE"}, rows) + "\n" + x.prompt;
  return result + starter_text(x, p.answer_file);
}

std::string text(const task& x, bool bold) {
  if (x.contract == contract_kind::program) return program_text(x, bold);
  if (x.contract == contract_kind::torch) return torch_text(x, bold);
  auto result = fmt::format("{}\n{}\n\n", cli::paint(bold, cli::colour::bold, x.id), x.title);
  result += fmt::format("{}, {}, {}, contract {}\n\n{}\n\n", x.verb, x.operator_family,
                        x.difficulty, to_string(x.contract), x.declaration());
  std::vector<std::vector<std::string>> rows;
  for (const auto& c : x.cases) {
    std::string fills;
    for (const auto& [name, fill] : c.fills)
      fills += (fills.empty() ? "" : ", ") + name + ": " + fill;
    rows.push_back({c.name, shape_text(x, c.scalars), c.hidden ? "hidden" : "visible", fills});
  }
  rows.push_back({"(timed)", shape_text(x, x.timed.scalars), "", ""});
  result += cli::format_table({"CASE", "SHAPE", "SEEN BY THE POLICY", "FILLS"}, rows);
  result +=
      fmt::format("\ntolerance {} units of 2^-24 of each element's scale; bytes {}; flops {}\n\n",
                  x.tolerance, x.bytes.text(), x.flops.text());
  result += x.prompt;
  bool device = x.verb == "port" ? x.port.from != "cpp" : x.terms.backend != "cpu";
  return result + starter_text(x, device ? "starter.cu" : "starter.cpp");
}

/// One error that names every task that could not be read.
error all_of(std::vector<error> faults) {
  auto result = std::move(faults.front());
  for (size_t i = 1; i < faults.size(); ++i) result.message += "\n" + faults[i].message;
  return result;
}

/// The ids that were typed, or all.
expected<std::vector<std::string>> ids_to_check(const invocation& in, const task_roots& roots) {
  auto all = list_tasks(roots);
  KM_TRY(all);
  return in.has("TASK") ? select_tasks(*all, in.list("TASK")) : *all;
}

/// The path of a Python with torch, where one of the tasks needs it; else empty.
expected<std::string> python_for(const invocation& in, const task_roots& roots,
                                 const std::vector<std::string>& ids) {
  for (const auto& id : ids) {
    auto x = load_task(roots, id);
    if (!x || (*x)->contract != contract_kind::torch)
      continue; // a task that cannot be loaded is told of when it is checked
    auto python = find_python(in.value("--python"));
    KM_TRY(python);
    return python->path;
  }
  return std::string{};
}

/// The CPU's, the GPU's, or both for "auto" where there is a GPU; with `hip_alone` the GPU's for
/// HIP, too.
expected<std::vector<workbench>> open_workbenches(const std::string& wanted,
                                                  const std::string& python, bool hip_alone) {
  auto backend = choose_backend(wanted);
  KM_TRY(backend);
  std::vector<chosen_backend> backends;
  if (wanted == "auto" && backend->name != "cpu") backends.emplace_back();
  backends.push_back(std::move(*backend));
  if (wanted == "auto" && backends.back().name == "cuda" && hip_alone)
    if (auto hip = choose_backend("hip")) backends.push_back(std::move(*hip));
  std::vector<workbench> result;
  for (auto& x : backends) {
    x.python = python;
    auto bench = workbench::open(std::move(x));
    KM_TRY(bench);
    result.push_back(std::move(*bench));
  }
  return result;
}

bool names_hip_alone(const task_roots& roots, const std::vector<std::string>& ids) {
  return std::any_of(ids.begin(), ids.end(), [&](const std::string& id) {
    auto x = load_task(roots, id);
    return x && (*x)->names("hip") && !(*x)->names("cuda");
  });
}

struct check_outcome {
  json backends = json::array();
  json problems = json::array();
  json notes = json::array();
  double seconds = 0;

  bool ok() const { return problems.empty(); }
  json document(const std::string& id) const {
    return {{"id", id},       {"ok", ok()},        {"backends", backends}, {"problems", problems},
            {"notes", notes}, {"seconds", seconds}};
  }
};

// Whether a module of the task's own passes, in whatever language it is.
expected<bool> module_passes(workbench& bench, const task& x) {
  judging_terms terms;
  terms.backend = bench.backend();
  auto open = std::make_shared<task>(x);
  open->torch.language = "any";
  auto here = on_terms(*open, std::move(terms));
  KM_TRY(here);
  offered_candidate starter{*here, as_source((*here)->starter, **here),
                            sha256_hex((*here)->starter)};
  if (!starter.parsed.ok) return false;
  auto built = build_candidate(bench.toolchain(), starter);
  auto made = built.open();
  if (!made->getCompiled()) return false;
  auto referee = bench.referee();
  KM_TRY(referee);
  auto evaluated = evaluate_candidate(**referee, {false, {}, {}, "device"}, starter, *made);
  KM_TRY(evaluated);
  return is_acceptable(*evaluated->open());
}

// Native tasks' starters the referee looks at by itself.
expected<void> check_starter(workbench& bench, const task& x, const std::string& where,
                             check_outcome& result) {
  if (x.contract != contract_kind::torch || !has_starter(x.verb)) return {};
  auto passes = module_passes(bench, x);
  KM_TRY(passes);
  if (x.verb == "debug" && *passes)
    result.problems.push_back(where + "the starter passes, and the verb is debug: there is nothing "
                                      "to repair");
  if (x.verb != "debug" && !*passes)
    result.problems.push_back(where + "the starter fails, and the verb is " + x.verb +
                              ": it must be right");
  return {};
}

expected<void> check_on(workbench& bench, const task& x, check_outcome& result) {
  auto referee = bench.referee();
  KM_TRY(referee);
  auto request =
      build<wire::CheckRequest>([&](wire::CheckRequest::Builder b) { b.setTaskDir(x.directory); });
  // Some problems of contract torch are whole networks with inputs of gigabytes.
  // Programs are built and run several times.
  bool takes_long = x.contract == contract_kind::torch || x.contract == contract_kind::program;
  auto answer = (*referee)->check(request, takes_long ? 600'000 : 120'000);
  KM_TRY(answer);
  auto opened = answer->open();
  std::string where = bench.backend() == "cpu" ? "" : bench.backend() + ": ";
  for (auto p : opened->getProblems())
    result.problems.push_back(where + cli::clean({p.cStr(), p.size()}));
  for (auto n : opened->getNotes())
    result.notes.push_back(where + cli::clean({n.cStr(), n.size()}));
  result.backends.push_back(bench.backend());
  result.seconds += opened->getSeconds();
  if (!opened->getOk()) return {};
  return check_starter(bench, x, where, result);
}

expected<check_outcome> check_one(std::vector<workbench>& benches, const task_roots& roots,
                                  const std::string& id, bool any_backend) {
  check_outcome result;
  auto x = load_task(roots, id);
  if (!x) {
    result.problems.push_back(render(x.error()));
    return result;
  }
  for (auto& bench : benches) {
    // Of what this machine has, the backends that the task does not name have nothing to check.
    if (any_backend && !(*x)->names(bench.backend())) continue;
    // HIP is built by CUDA's compiler there.
    if (any_backend && bench.backend() == "hip" && (*x)->names("cuda")) continue;
    KM_TRY(check_on(bench, **x, result));
  }
  if (result.backends.empty())
    result.notes.push_back("not checked: this machine has none of its backends: " +
                           joined((*x)->backends));
  return result;
}

void print_check(const json& x, bool ok, bool colour) {
  auto state = ok ? cli::paint(colour, cli::colour::green, "ok  ")
                  : cli::paint(colour, cli::colour::red, "FAIL");
  cli::print(fmt::format("{} {}\n", state, x["id"].get<std::string>()));
  for (const auto& p : x["problems"]) cli::print("       problem: " + p.get<std::string>() + "\n");
  for (const auto& n : x["notes"]) cli::print("       " + n.get<std::string>() + "\n");
}

expected<int> task_check(const invocation& in) {
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto ids = ids_to_check(in, *roots);
  KM_TRY(ids);
  auto python = python_for(in, *roots, *ids);
  KM_TRY(python);
  auto benches = open_workbenches(in.value("--backend"), *python, names_hip_alone(*roots, *ids));
  KM_TRY(benches);
  json tasks = json::array();
  size_t failures = 0;
  for (const auto& id : *ids) {
    cli::show_activity(fmt::format("checking {}, {} of {}", id, tasks.size() + 1, ids->size()));
    auto checked = check_one(*benches, *roots, id, in.value("--backend") == "auto");
    KM_TRY(checked);
    failures += checked->ok() ? 0 : 1;
    auto document = checked->document(id);
    if (!in.json) print_check(document, checked->ok(), in.colour_out);
    tasks.push_back(std::move(document));
  }
  if (in.json)
    cli::print_json({{"ok", failures == 0}, {"tasks", tasks}});
  else
    cli::print(fmt::format("{}, {} refused\n", counted(ids->size(), "task"), failures));
  return failures == 0 ? cli::exit_ok : cli::exit_quality;
}

expected<int> task_list(const invocation& in) {
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto ids = list_tasks(*roots);
  KM_TRY(ids);
  json tasks = json::array(), broken = json::array();
  std::vector<std::vector<std::string>> rows;
  std::vector<error> faults;
  for (const auto& id : *ids) {
    auto x = load_task(*roots, id);
    if (!x) {
      faults.push_back(x.error());
      broken.push_back({{"id", id}, {"problem", x.error().message}, {"next", x.error().hint}});
      continue;
    }
    const auto& what = **x;
    tasks.push_back(head(what));
    rows.push_back({what.id, what.verb, what.operator_family, what.difficulty, what.title});
  }
  if (in.json)
    cli::print_json(
        {{"root", roots->front()}, {"roots", *roots}, {"tasks", tasks}, {"broken", broken}});
  else
    cli::print(cli::format_table({"TASK", "VERB", "FAMILY", "DIFFICULTY", "TITLE"}, rows));
  if (faults.empty()) return 0;
  return tl::unexpected<error>{all_of(std::move(faults))};
}

expected<int> task_show(const invocation& in) {
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto x = choose_task(*roots, in.value("TASK"));
  KM_TRY(x);
  if (in.json)
    cli::print_json(full(**x));
  else
    cli::print(text(**x, in.colour_out));
  return 0;
}

} // namespace

cli::command task_list_row() {
  return {"task list",    "Lists the tasks.", "kernelmill task list", "", {},
          {tasks_root()}, task_list};
}

cli::command task_show_row() {
  return {"task show",
          "Shows a task: signature, cases, prompt.",
          "kernelmill task show native/row_sum",
          "",
          {{"TASK", "Id of a task.", true, false, completes::task, {}}},
          {tasks_root()},
          task_show};
}

cli::command task_check_row() {
  return {"task check",
          "Checks that no output can pass the task without doing the work.",
          "kernelmill task check native/row_sum\n"
          "kernelmill task check --backend cuda native/row_sum",
          "On cuda, baseline.cu must pass every case, and reference.cu must agree with "
          "reference.cpp on each case.\n"
          "Exit code 5 when a task is refused.",
          {{"TASK", "Ids or globs. Default: all tasks.", false, true, completes::task, {}}},
          {{"--backend",
            "NAME",
            "Backend to check. `auto`: every backend that the task names and this machine has.",
            "auto",
            false,
            {"auto", "cpu", "cuda", "hip"},
            nothing},
           python_path(),
           tasks_root()},
          task_check};
}

} // namespace kernelmill::commands
