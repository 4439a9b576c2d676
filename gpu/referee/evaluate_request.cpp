// An evaluation as the node asks for it: the request read, the result written.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>

#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/device.hpp"
#include "gpu/referee/evaluation.hpp"
#include "gpu/referee/not_timed.hpp"
#include "gpu/referee/result_words.hpp"
#include "gpu/referee/second_look.hpp"
#include "gpu/referee/stolen_time.hpp"
#include "gpu/referee/task_check.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill {

namespace {

constexpr uint32_t default_deadline_ms = 30'000;
constexpr off_t max_library_bytes = off_t{64} << 20;

/// What was built: read whole where it has to be checked or is no library.
struct built_file {
  descriptor file;
  std::string bytes;
};

expected<built_file> open_built(const std::string& path, const std::string& digest) {
  auto fail = [&](const std::string& cause) {
    return infrastructure_error("library_lost", "failed to open the library " + path + ": " + cause,
                                "build the candidate again");
  };
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return fail(std::strerror(errno));
  if (about.st_size > max_library_bytes) return fail("it is larger than 64 MiB");
  std::string bytes(static_cast<size_t>(about.st_size), '\0');
  if (::pread(file.get(), bytes.data(), bytes.size(), 0) != about.st_size)
    return fail("it cannot be read");
  if (!digest.empty() && sha256_hex(bytes) != digest)
    return fail("its content is not what was built");
  return built_file{std::move(file), std::move(bytes)};
}

evaluation_options options_of(wire::EvaluateRequest::Reader request) {
  evaluation_options result;
  result.visible_only = request.getVisibleOnly();
  result.timed = request.getTiming().getEnabled() && !result.visible_only;
  result.half_width = request.getTiming().getHalfWidth();
  result.clock = clock_of(request.getTiming());
  result.profiled = request.getProfile();
  auto seed = request.getSeed();
  result.seeded = seed.size() == result.seed.size();
  if (result.seeded) std::copy(seed.begin(), seed.end(), result.seed.begin());
  uint32_t deadline = request.getDeadlineMs() > 0 ? request.getDeadlineMs() : default_deadline_ms;
  deadline -= std::min(deadline, request.getSanitizeMs()); // which is spent behind the evaluation
  result.deadline = now_seconds() + deadline * 1e-3;
  return result;
}

evaluation_record evaluate_files(referee_parts parts, wire::EvaluateRequest::Reader request,
                                 const task*& spec) {
  evaluation_record record;
  auto fail = [&](const error& fault) {
    record.fault = fault;
    return record;
  };
  if (auto size = request.getSeed().size(); size != 0 && size != record.seed.size())
    return fail({fault_class::configuration,
                 "bad_seed",
                 "failed to use a seed of " + std::to_string(size) + " bytes: it must have 32",
                 {}});
  double started = now_seconds();
  auto prepared =
      parts.tasks.get(request.getTaskDir(), request.getTaskDigest(), parts.named_baseline);
  if (!prepared) return fail(prepared.error());
  spec = &(*prepared)->spec();
  if (const auto& why = unfit(parts, **prepared)) return fail(*why);
  auto built = open_built(request.getLibraryPath(), request.getLibrarySha256());
  if (!built) return fail(built.error());
  double ready = now_seconds() - started;
  auto options = options_of(request);
  stolen_time stolen;
  record = with_second_look(
      [&] {
        return request.getContract() == "device"
                   ? evaluate_program(parts, **prepared, built->bytes, options)
                   : evaluate_library(parts, **prepared, built->file.get(), options);
      },
      [&] { return options.deadline - now_seconds(); });
  if (options.timed && !options.profiled) settle_untimed(record, request.getTiming().getWidest());
  record.timing.baseline_name = request.getBaseline().cStr();
  record.timing.baseline_note = request.getBaselineNote().cStr();
  stolen.note(record);
  record.spans.insert(record.spans.begin(), {"task", ready});
  return record;
}

void write_cases(const evaluation_record& x, const task* spec, wire::EvaluateResult::Builder out) {
  auto cases = out.initCases(static_cast<unsigned>(x.cases.size()));
  for (unsigned i = 0; i < x.cases.size(); ++i) {
    const auto& from = x.cases[i];
    cases[i].setName(from.which->name);
    cases[i].setShape(shape_text(*spec, from.which->scalars));
    cases[i].setHidden(from.which->hidden);
    cases[i].setDistribution(from.distribution);
    cases[i].setMaxError(from.result.max_error);
    cases[i].setBound(from.result.bound);
    cases[i].setPass(from.pass);
    cases[i].setBadCount(from.result.bad);
    cases[i].setFirstBad(from.result.first_bad);
  }
}

} // namespace

paid_clock clock_of(wire::TimingPolicy::Reader policy) {
  return policy.getClock() == "call" ? paid_clock::call : paid_clock::device;
}

Message<wire::EvaluateResult> evaluate_request(referee_parts parts,
                                               wire::EvaluateRequest::Reader request) {
  double started = now_seconds();
  const task* spec = nullptr;
  auto record = evaluate_files(parts, request, spec);
  return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder out) {
    write_cases(record, spec, out);
    write_record(record, spec != nullptr ? shape_text(*spec, spec->timed.scalars) : "", out);
    out.setDevice(parts.gpu != nullptr ? parts.gpu->description() : parts.hardware.description());
    if (parts.gpu != nullptr) out.setDeviceUuid(parts.gpu->uuid());
    out.setSeconds(now_seconds() - started);
  });
}

} // namespace kernelmill
