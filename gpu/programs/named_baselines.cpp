#include "gpu/programs/named_baselines.hpp"

#include <filesystem>
#include <fstream>

#include <capnp/message.h>
#include <unistd.h>

#include "messages/base/digest.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

constexpr size_t most_admitted = 4096;

expected<std::string> kept_in(const std::string& folder, capnp::Data::Reader product) {
  auto path = folder + "/" + sha256_hex({product.asChars().begin(), product.size()});
  std::error_code problem;
  if (fs::exists(path, problem)) return path;
  fs::create_directories(folder, problem);
  auto part = path + "." + std::to_string(::getpid());
  std::ofstream out{part, std::ios::binary};
  out.write(product.asChars().begin(), static_cast<std::streamsize>(product.size()));
  out.close();
  if (out) fs::rename(part, path, problem);
  if (!out || problem)
    return infrastructure_error("io_error", "failed to write " + path,
                                "is the disk full? --cache names another folder");
  return path;
}

// A candidate on the same terms, without a clock.
Message<wire::EvaluateRequest> as_candidate(wire::EvaluateRequest::Reader request,
                                            const std::string& path) {
  auto product = request.getBaselineProduct();
  auto sha256 = sha256_hex({product.asChars().begin(), product.size()});
  return build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder out) {
    out.setTaskDir(request.getTaskDir());
    out.setTaskDigest(request.getTaskDigest());
    out.setTaskId(request.getTaskId());
    out.setCandidateSha256(request.getBaselineSha256());
    out.setLibraryPath(path);
    out.setLibrarySha256(sha256);
    out.setContract(request.getContract() == "torch" ? "torch" : "native");
    out.setMode(request.getMode());
    out.setFloat32(request.getFloat32());
    out.setDeadlineMs(request.getDeadlineMs());
    out.initTiming().setEnabled(false);
  });
}

error refusal_of(wire::EvaluateRequest::Reader request, wire::EvaluateResult::Reader result) {
  std::string why = result.getFault().getMessage().cStr();
  for (auto found : result.getFindings())
    if (why.empty() && found.getSeverity() == wire::Severity::CRITICAL)
      why = std::string{found.getRule().cStr()} + ": " + found.getEvidence().cStr();
  return {fault_class::configuration, "bad_baseline",
          "failed to use the baseline (" + std::string{request.getBaseline().cStr()} + ", " +
              std::string{request.getBaselineSha256().cStr()}.substr(0, 12) + ") for task " +
              request.getTaskId().cStr() + ": it fails as a candidate: " + why,
          "name another with evaluation.baseline (--baseline), or `eager`"};
}

} // namespace

expected<std::string> named_baselines::admit(wire::EvaluateRequest::Reader request,
                                             const judging& judge) {
  auto product = request.getBaselineProduct();
  if (product.size() == 0 || !request.getTiming().getEnabled()) return std::string{};
  auto path = kept_in(folder_, product);
  KM_TRY(path);
  auto key = *path + " " + request.getTaskDir().cStr() + " " + request.getTaskDigest().cStr() +
             " " + request.getMode().cStr() + " " + request.getFloat32().cStr();
  if (admitted_.contains(key)) return path;
  auto asked = as_candidate(request, *path);
  auto answer = judge(*asked.open());
  auto result = answer.open();
  auto fault = result->getFault();
  bool is_its_own =
      fault.getClass() == wire::FaultClass::NONE || fault.getClass() == wire::FaultClass::CANDIDATE;
  if (!is_its_own) return tl::unexpected<error>{fault_of(fault)};
  bool condemned = false;
  for (auto found : result->getFindings())
    condemned = condemned || found.getSeverity() == wire::Severity::CRITICAL;
  if (!result->getCorrect() || condemned)
    return tl::unexpected<error>{refusal_of(request, *result)};
  if (admitted_.size() >= most_admitted) admitted_.clear();
  admitted_.insert(key);
  return path;
}

} // namespace kernelmill
