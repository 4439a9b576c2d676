#include "launch/cli/terminal.hpp"
#include "launch/judging/inspecting/parts.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::inspecting {

namespace {

using json = nlohmann::ordered_json;

json amd_document(const inspected_code& code, const gcn_resources& x) {
  json mix = nullptr;
  for (const auto& kernel : code.gcn)
    if (kernel.name == x.name) mix = instruction_mix(kernel);
  return {{"name", cli::clean(x.name)},
          {"vgprs", x.vgprs},
          {"agprs", x.agprs},
          {"sgprs", x.sgprs},
          {"vgpr_spills", x.vgpr_spills},
          {"sgpr_spills", x.sgpr_spills},
          {"scratch_bytes", x.scratch_bytes},
          {"lds_bytes", x.lds_bytes},
          {"wavefront", x.wavefront},
          {"code_bytes", x.code_bytes},
          {"waves_per_simd", x.waves > 0 ? json(x.waves) : json(nullptr)},
          {"mix", std::move(mix)}};
}

json build_document(const inspected& x, const showing& how) {
  auto kernels = json::array();
  for (const auto& one : x.codes) {
    for (const auto& k : one.code.kernels) {
      json document = {{"name", cli::clean(k.name)},         {"registers", k.registers},
                       {"spill_stores", k.spill_stores},     {"spill_loads", k.spill_loads},
                       {"stack_frame", k.stack_frame},       {"shared_bytes", k.shared_bytes},
                       {"block_threads", how.block_threads}, {"occupancy", nullptr},
                       {"occupancy_limit", nullptr}};
      if (auto found = occupancy_for(x, k, how.block_threads)) {
        document["occupancy"] = found->share;
        document["occupancy_limit"] = to_string(found->limit);
      }
      kernels.push_back(named(one.code, std::move(document)));
    }
    for (const auto& k : one.amd) kernels.push_back(named(one.code, amd_document(one, k)));
  }
  return {{"kernels", std::move(kernels)}, {"log", cli::clean(x.log)}};
}

json listing_document(const inspected& x, code_listing which) {
  auto result = json::array();
  for (const auto& one : x.codes)
    for (const auto& kernel : one.*which) {
      auto lines = json::array();
      for (const auto& line : kernel.lines) {
        auto& told =
            lines.emplace_back(json{{"line", line.source_line}, {"text", cli::clean(line.text)}});
        if (line.live) told["live_registers"] = *line.live;
      }
      result.push_back(named(one.code, {{"name", cli::clean(kernel.name)},
                                        {"mix", instruction_mix(kernel)},
                                        {"code", std::move(lines)}}));
    }
  return result;
}

json triview_document(const inspected& x) {
  auto texts = [](const std::vector<std::string>& list) {
    auto result = json::array();
    for (const auto& text : list) result.push_back(cli::clean(text));
    return result;
  };
  auto number = [](std::optional<uint32_t> value) { return value ? json(*value) : json(nullptr); };
  auto numbers = [&](const std::vector<std::optional<uint32_t>>& list) {
    auto result = json::array();
    for (auto value : list) result.push_back(number(value));
    return result;
  };
  auto result = json::array();
  for (const auto& one : x.codes)
    for (const auto& view : one.views()) {
      auto rows = json::array();
      for (const auto& row : view.rows) {
        json document = {{"line", row.line}, {"source", cli::clean(row.source)}};
        if (x.is_amd()) {
          document["gcn"] = texts(row.gcn);
        } else {
          document["ptx"] = texts(row.ptx);
          document["sass"] = texts(row.sass);
          document["sass_live_registers"] = numbers(row.sass_live);
          document["live_registers"] = number(row.live());
        }
        rows.push_back(std::move(document));
      }
      result.push_back(
          named(one.code, {{"name", cli::clean(view.name)}, {"rows", std::move(rows)}}));
    }
  return result;
}

json stages_document(const inspected& x) {
  auto result = json::array();
  for (const auto& one : x.codes)
    for (const auto& [stage, text] : one.code.stages)
      result.push_back(named(one.code, {{"stage", stage}, {"text", cli::clean(text)}}));
  return result;
}

} // namespace

json named(const listed_code& code, json document) {
  if (!code.name.empty()) document["of"] = cli::clean(code.name);
  return document;
}

nlohmann::ordered_json document_of(const inspected& x, const showing& how) {
  json result = json::object();
  if (how.wants("build")) result["build"] = build_document(x, how);
  bool nvidia = !x.is_amd();
  if (how.wants("ptx") && nvidia) result["ptx"] = listing_document(x, &inspected_code::ptx);
  if (how.wants("sass") && nvidia) result["sass"] = listing_document(x, &inspected_code::sass);
  if (how.wants("gcn") && !nvidia) result["gcn"] = listing_document(x, &inspected_code::gcn);
  if (how.wants("triview")) result["triview"] = triview_document(x);
  if (how.wants("profile")) result["profile"] = profile_document(x, how);
  if (how.wants("quality")) result["quality"] = quality_document(x);
  bool stages = how.section.empty() || is_stage(how.section);
  if (stages && nvidia) result["stages"] = stages_document(x);
  return result;
}

} // namespace kernelmill::inspecting
