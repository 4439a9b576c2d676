// Whose fault an extension is that was not built.

#include "gpu/toolchain/torch_extension.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill {

namespace {

// As small as an extension can be. Flags of a candidate's could make that fail, too.
extension_request control_request(bool with_cuda) {
  constexpr const char* declared = "torch::Tensor kernelmill_control(torch::Tensor x)";
  extension_request result;
  result.name = "kernelmill_control";
  result.key = sha256_hex(result.name);
  result.functions = {{result.name, result.name}};
  result.sources = {{"main.cpp", std::string{declared} + (with_cuda ? ";\n" : " { return x; }\n")}};
  if (with_cuda)
    result.sources.push_back({"cuda.cu", "__global__ void kernelmill_control_kernel() {}\n" +
                                             std::string{declared} +
                                             " {\n  kernelmill_control_kernel<<<1, 32>>>();\n"
                                             "  return x;\n}\n"});
  return result;
}

} // namespace

expected<void> torch_extension_builder::control(bool with_cuda, bool slim_allowed,
                                                int deadline_ms) {
  auto built = build_once(control_request(with_cuda), deadline_ms, slim_allowed);
  auto& fault = built.findings.fault;
  if (fault.cls == fault_class::none) return {};
  if (fault.cls != fault_class::candidate) return tl::unexpected<error>{fault};
  compiler_outcome said;
  said.status.code = 1;
  said.timed_out = fault.category == "compile_timeout";
  said.text = built.findings.log;
  return tl::unexpected<error>{fault_of_control(
      said, with_cuda ? "a torch extension of ours with CUDA" : "a torch extension of ours")};
}

built_extension torch_extension_builder::build(const extension_request& request, int deadline_ms) {
  built_extension latest;
  auto whose = attribute(
      {[&] {
         latest = build_once(request, deadline_ms, true);
         return latest.evidence;
       },
       [&] { return control(request.has_cuda(), !latest.failed_in_headers, deadline_ms); }});
  if (!whose) latest.findings.fault = whose.error();
  return latest;
}

} // namespace kernelmill
