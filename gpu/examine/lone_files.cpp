#include "gpu/examine/lone_files.hpp"

#include <algorithm>
#include <cstring>

#include "gpu/candidate/lone_calls.hpp"
#include "gpu/referee/device/program_plan.hpp"
#include "gpu/referee/workload.hpp"
#include "gpu/task/device_artifact.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t most_contents = uint64_t{8} << 30;
constexpr size_t contents_alignment = 256;

size_t aligned(size_t x) {
  return (x + contents_alignment - 1) / contents_alignment * contents_alignment;
}

int64_t number_of(const expression& x, const task_case& which) {
  return x.evaluate(which.scalars).value_or(0); // the loader has evaluated all of them
}

void fill_argument(const argument& arg, const task_case& which, char* at, size_t bytes,
                   const secret_seed& seed) {
  auto key = derive_key(seed, which.name, 0, arg.name);
  auto row = static_cast<size_t>(std::max<int64_t>(1, number_of(arg.shape.back(), which)));
  auto count = bytes / 4;
  const auto& name = fill_of(arg, which);
  if (arg.type == dtype::f32)
    fill(std::span{reinterpret_cast<float*>(at), count}, name, row, key);
  else
    fill(std::span{reinterpret_cast<int32_t*>(at), count}, name, row,
         number_of(arg.fill_range[0], which), number_of(arg.fill_range[1], which), key);
}

// Where each tensor of a case lies in the file; `end` moves on.
expected<void> place_tensors(const task& x, const task_case& which, lone_case& into, size_t& end) {
  for (size_t i = 0; i < x.arguments.size(); ++i) {
    auto bytes = tensor_bytes(x, i, which);
    into.buffers[i] = {bytes, 0};
    if (bytes == 0 || !is_filled(x.arguments[i])) continue;
    into.buffers[i].contents = end;
    end = aligned(end + bytes);
  }
  if (end <= most_contents) return {};
  return configuration_error("bad_task", "failed to lay out " + x.id + ": its inputs exceed 8 GiB");
}

void place_scratch(const task& x, const program_plan& plan, const task_case& which,
                   lone_case& into) {
  for (size_t i = 0; i < plan.scratch().size(); ++i) {
    auto bytes = plan.scratch()[i].bytes.evaluate(which.scalars).value_or(0);
    into.buffers[x.arguments.size() + i] = {static_cast<uint64_t>(std::max<int64_t>(bytes, 1)), 0};
  }
}

// The file of the calls, with its contents.
expected<shared_page> write_calls(const task& x, const std::vector<task_case>& cases,
                                  const lone_file& head, size_t end, const secret_seed& seed) {
  auto file = shared_page::create(end);
  KM_TRY(file);
  auto* at = static_cast<char*>(file->data());
  std::memcpy(at, &head, sizeof head);
  for (size_t i = 0; i < cases.size(); ++i)
    for (size_t k = 0; k < x.arguments.size(); ++k)
      if (const auto& buffer = head.list[i].buffers[k]; buffer.contents != 0)
        fill_argument(x.arguments[k], cases[i], at + buffer.contents, buffer.bytes, seed);
  return file;
}

expected<shared_page> page_of(const std::string& bytes) {
  auto page = shared_page::create(bytes.size());
  KM_TRY(page);
  std::memcpy(page->data(), bytes.data(), bytes.size());
  return page;
}

// Scratch memory as tensors behind those of the task.
void name_scratch(const task& x, device_program& program) {
  program.scratch_buffers = 0;
  for (uint32_t i = 0; i < program.launches; ++i)
    for (uint32_t k = 0; k < program.plan[i].arguments; ++k) {
      auto& from = program.plan[i].list[k];
      if (from.kind != program_argument_kind::scratch) continue;
      from.kind = program_argument_kind::tensor;
      from.index += static_cast<uint32_t>(x.arguments.size());
    }
}

tl::unexpected<error> cannot_load(const std::string& cause) {
  return candidate_error("load_failed", "failed to load the device code: " + cause);
}

} // namespace

std::vector<task_case> shown_cases(const task& x) {
  std::vector<task_case> result;
  for (const auto& one : x.cases)
    if (!one.hidden && result.size() + 1 < lone_cases) result.push_back(one);
  if (!x.timed_cpu.scalars.empty()) result.push_back(x.timed_cpu);
  return result;
}

expected<lone_files> lay_out(const task& x, const std::string& artifact,
                             const std::vector<task_case>& cases, unsigned calls,
                             const secret_seed& seed) {
  auto parts = unpack_device_artifact(artifact);
  if (!parts || parts->cubin.size() > program_file_bytes - program_cubin_at)
    return cannot_load("it is larger than 31 MiB or damaged");
  auto plan = program_plan::read(parts->source, x);
  KM_TRY(plan);
  if (x.arguments.size() + plan->scratch().size() > max_arguments || cases.size() > lone_cases)
    return cannot_load("it has more than 16 tensors and scratch buffers");
  auto program_file = shared_page::create(program_file_bytes);
  KM_TRY(program_file);
  auto& program = *static_cast<device_program*>(program_file->data());
  if (auto fault = plan->write(program)) return tl::unexpected<error>{*fault};
  std::memcpy(static_cast<char*>(program_file->data()) + program_cubin_at, parts->cubin.data(),
              parts->cubin.size());

  lone_file head{lone_magic, cases.size(), {}, 0, {}};
  size_t end = aligned(sizeof head);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (auto fault = plan->select(cases[i].scalars, program)) return tl::unexpected<error>{*fault};
    name_scratch(x, program);
    auto& into = head.list[i];
    into.calls = calls;
    into.launches = program.launches;
    std::memcpy(into.plan, program.plan, sizeof into.plan);
    place_scratch(x, *plan, cases[i], into);
    KM_TRY(place_tensors(x, cases[i], into, end));
  }
  auto calls_file = write_calls(x, cases, head, end, seed);
  KM_TRY(calls_file);
  return lone_files{std::move(*program_file), std::move(*calls_file), program.launches, {}};
}

expected<lone_files> lay_out_library(const task& x, const std::string& library,
                                     const std::vector<task_case>& cases, unsigned calls,
                                     const secret_seed& seed) {
  lone_file head{lone_magic, cases.size(), {}, calls > 1 ? uint64_t{1} : 0, {}};
  if (library.empty() || x.function.size() >= sizeof head.function ||
      x.arguments.size() > max_arguments || cases.size() > lone_cases)
    return cannot_load("it is empty, or has more than 16 arguments");
  x.function.copy(head.function, x.function.size());
  size_t end = aligned(sizeof head);
  for (size_t i = 0; i < cases.size(); ++i) {
    auto& into = head.list[i];
    into.calls = calls;
    KM_TRY(place_tensors(x, cases[i], into, end));
    for (size_t k = 0; k < x.arguments.size(); ++k)
      if (x.arguments[k].role == argument_role::scalar)
        into.values[k] = cases[i].scalars.at(x.arguments[k].name);
  }
  auto program = page_of(library);
  KM_TRY(program);
  auto file = write_calls(x, cases, head, end, seed);
  KM_TRY(file);
  lone_files result{std::move(*program), std::move(*file), 0, {}};
  result.marks_last = head.marked != 0;
  return result;
}

// -- contract torch -------------------------------------------------------------------------------

namespace {

constexpr uint64_t most_module_inputs = uint64_t{1} << 30;
constexpr uint64_t most_input_memory = uint64_t{8} << 30;

std::vector<std::string> python_words(const python_facts& python, const char* program) {
  return {python.executable, "-I", "-B",
          std::string{python_package_mount} + "/kernelmill_torch/" + program};
}

// The problem's text never comes near the candidate.
expected<std::string> draw_inputs(sandbox& walls, const python_facts& python, const task& x,
                                  const secret_seed& seed, int limit_ms) {
  uint64_t number = 0;
  std::memcpy(&number, seed.data(), sizeof number);
  compiler_job job;
  job.argv = python_words(python, "init_inputs.py");
  job.argv.insert(job.argv.end(), {"/build/problem.py", product_path, std::to_string(number >> 1)});
  job.environment = python_environment();
  job.mounts = python_mounts(python);
  job.source_name = "problem.py";
  job.source = x.torch.code;
  job.memory_bytes = most_input_memory;
  job.address_space = no_limit;
  job.process_count = 256;
  job.product_bytes = most_module_inputs;
  job.deadline_ms = limit_ms;
  auto outcome = run_compiler(walls, job);
  KM_TRY(outcome);
  auto bytes = read_whole(outcome->product.get()).value_or("");
  if (outcome->status.code == 0 && !outcome->timed_out && !bytes.empty()) return bytes;
  return configuration_error(
      "bad_task",
      "failed to draw inputs of " + x.id + " to call a module with: " +
          (outcome->timed_out ? "the time is over" : "they fail, or have more than 1 GiB"));
}

} // namespace

expected<lone_files> lay_out_module(sandbox& walls, const python_facts& python, const task& x,
                                    const std::string& artifact, unsigned calls,
                                    const secret_seed& seed, int limit_ms) {
  auto inputs = draw_inputs(walls, python, x, seed, limit_ms);
  KM_TRY(inputs);
  auto program = page_of(artifact);
  KM_TRY(program);
  auto drawn = page_of(*inputs);
  KM_TRY(drawn);
  lone_files result{std::move(*program), std::move(*drawn), 0, python_words(python, "lone.py")};
  result.argv.push_back(x.torch.precision);
  result.marks_last = calls > 1;
  if (result.marks_last) result.argv.insert(result.argv.end(), {"cuda", std::to_string(calls)});
  for (auto& variable : python_environment())
    if (!variable.starts_with("CUDA_VISIBLE_DEVICES=")) result.environment.push_back(variable);
  // Each tensor is an allocation of its own, so that the tool knows where it ends. A profile is of
  // kernels as they run when they are timed.
  if (calls <= 1) result.environment.emplace_back("PYTORCH_NO_CUDA_MEMORY_CACHING=1");
  result.mounts = python_mounts(python);
  return result;
}

namespace {

expected<lone_files> lay_out_any(sandbox& walls, const std::string& python, const task& x,
                                 const std::string& artifact, const std::vector<task_case>& cases,
                                 unsigned calls, int limit_ms) {
  auto seed = draw_seed();
  if (x.contract == contract_kind::device) return lay_out(x, artifact, cases, calls, seed);
  if (x.contract != contract_kind::torch) return lay_out_library(x, artifact, cases, calls, seed);
  if (python.empty())
    return configuration_error("python_missing", "failed to call " + x.id + ": there is no Python",
                               "name an interpreter that imports torch with --python");
  auto facts = ask_python(walls.processes(), python);
  KM_TRY(facts);
  return lay_out_module(walls, *facts, x, artifact, calls, seed, limit_ms);
}

} // namespace

expected<lone_files> lay_out_candidate(sandbox& walls, const std::string& python, const task& x,
                                       const std::string& artifact, int limit_ms) {
  return lay_out_any(walls, python, x, artifact, shown_cases(x), 1, limit_ms);
}

unsigned profiled_calls(const task& x) {
  return x.contract == contract_kind::torch ? 4 : 50;
}

expected<lone_files> lay_out_profiled(sandbox& walls, const std::string& python, const task& x,
                                      const std::string& artifact, unsigned calls, int limit_ms) {
  return lay_out_any(walls, python, x, artifact, {x.timed}, calls, limit_ms);
}

} // namespace kernelmill
