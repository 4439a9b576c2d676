#include "gpu/examine/lone_files.hpp"

#include <algorithm>
#include <cstring>

#include "gpu/candidate/lone_calls.hpp"
#include "gpu/referee/device/program_plan.hpp"
#include "gpu/referee/workload.hpp"
#include "gpu/task/device_artifact.hpp"

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

// Where each buffer of a case lies in the file; `end` moves on.
expected<void> place_buffers(const task& x, const program_plan& plan, const task_case& which,
                             lone_case& into, size_t& end) {
  for (size_t i = 0; i < x.arguments.size(); ++i) {
    auto bytes = tensor_bytes(x, i, which);
    into.buffers[i] = {bytes, 0};
    if (bytes == 0 || !is_filled(x.arguments[i])) continue;
    into.buffers[i].contents = end;
    end = aligned(end + bytes);
  }
  for (size_t i = 0; i < plan.scratch().size(); ++i) {
    auto bytes = plan.scratch()[i].bytes.evaluate(which.scalars).value_or(0);
    into.buffers[x.arguments.size() + i] = {static_cast<uint64_t>(std::max<int64_t>(bytes, 1)), 0};
  }
  if (end <= most_contents) return {};
  return configuration_error("bad_task", "failed to lay out " + x.id + ": its inputs exceed 8 GiB");
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

  lone_file head{lone_magic, cases.size(), {}};
  size_t end = aligned(sizeof head);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (auto fault = plan->select(cases[i].scalars, program)) return tl::unexpected<error>{*fault};
    name_scratch(x, program);
    auto& into = head.list[i];
    into.calls = calls;
    into.launches = program.launches;
    std::memcpy(into.plan, program.plan, sizeof into.plan);
    KM_TRY(place_buffers(x, *plan, cases[i], into, end));
  }
  auto calls_file = shared_page::create(end);
  KM_TRY(calls_file);
  auto* at = static_cast<char*>(calls_file->data());
  std::memcpy(at, &head, sizeof head);
  for (size_t i = 0; i < cases.size(); ++i)
    for (size_t k = 0; k < x.arguments.size(); ++k)
      if (const auto& buffer = head.list[i].buffers[k]; buffer.contents != 0)
        fill_argument(x.arguments[k], cases[i], at + buffer.contents, buffer.bytes, seed);
  return lone_files{std::move(*program_file), std::move(*calls_file), program.launches};
}

} // namespace kernelmill
