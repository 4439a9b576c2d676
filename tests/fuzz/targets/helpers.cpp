// What helpers report that ran a candidate's code: its words may be the candidate's.

#include <algorithm>

#include "gpu/task/torch_artifact.hpp"
#include "gpu/toolchain/torch_flags.hpp"
#include "gpu/toolchain/torch_request.hpp"
#include "gpu/toolchain/torch_sources.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

void check_flags(const chosen_flags& x, const char* what) {
  for (const auto& flag : x.taken)
    promise(
        flag.starts_with("-D") || flag.starts_with("-U") || // a macro's value is a text
            (flag.find('/') == flag.npos && flag.find('@') == flag.npos && flag.starts_with('-')),
        what);
}

void check_request(const extension_request& x) {
  promise(!x.sources.empty(), "an extension has a source");
  for (const auto& source : x.sources)
    promise(source.name.find('/') == source.name.npos && !source.name.starts_with('.'),
            "a source's name stays in its folder");
  for (size_t i = 0; i < x.sources.size(); ++i) {
    auto unit = translation_unit(x, i);
    promise(unit.size() < (size_t{4} << 20), "a translation unit is bounded");
    shown_source_name(x, i);
    slim_macros(unit);
    may_be_slim(unit);
  }
  check_flags(choose_host_flags(x.flags), "no flag of a compiler names a file");
  check_flags(choose_cuda_flags(x.cuda_flags), "no flag of nvcc names a file");
  check_flags(choose_link_flags(x.link_flags, {"/usr/lib"}), "no flag of a linker names a file");
  wanted_architecture(x.cuda_flags, "sm_90");
}

} // namespace

void helpers(std::string_view bytes) {
  auto lines = lines_of(bytes, 64);
  check_flags(choose_host_flags(lines), "no flag of a compiler names a file");
  check_flags(choose_cuda_flags(lines), "no flag of nvcc names a file");
  check_flags(choose_link_flags(lines, {"/usr/lib"}), "no flag of a linker names a file");
  auto report = parse_recording(std::string{bytes} + "\n");
  if (!report) {
    check_error(report.error());
    promise(report.error().cls == fault_class::candidate, "a bad report is the candidate's");
    return;
  }
  promise(report->requests.size() <= most_extensions, "the number of extensions is bounded");
  for (const auto& x : report->requests) check_request(x);
  pack_torch_artifact({"source", {}, report->triton_files});
}

} // namespace kernelmill::fuzz
