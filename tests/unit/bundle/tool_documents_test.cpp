// Files of a bundle that are filled where a tool ran, and say why where none did.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/judging/inspecting/inspected.hpp"
#include "tests/unit/bundle/made_turn.hpp"
#include "tests/unit/inspect/golden_listing.hpp"

namespace kernelmill::bundle_documents_test {

using testing::HasSubstr;

std::string reason_in(const json& x) {
  return x.value("status", "") == "not_run" ? x.value("reason", "") : std::string{};
}

TEST(tool_documents, raw_timings_are_the_pairs_of_the_record) {
  auto x = document_in(files_of(made_turn({true, 3})), "perf/raw_timings.json");
  ASSERT_EQ(x["timings"].size(), 3u) << x;
  EXPECT_EQ(x["timings"][0].dump(), R"({"candidate_ms":0.1,"baseline_ms":0.25})");
  EXPECT_EQ(x["timer"], "outside");
}

TEST(tool_documents, raw_timings_of_an_older_record_say_why_there_are_none) {
  auto older = document_in(files_of(made_turn({true, 0})), "perf/raw_timings.json");
  EXPECT_THAT(reason_in(older), HasSubstr("it is older"));
  auto untimed = document_in(files_of(made_turn({false, 0})), "perf/raw_timings.json");
  EXPECT_THAT(reason_in(untimed), HasSubstr("was not timed"));
}

TEST(tool_documents, a_sanitizer_is_told_from_none) {
  auto none = document_in(files_of(made_turn({})), "sanitize/memcheck_summary.json");
  EXPECT_THAT(reason_in(none), HasSubstr("no sanitizer"));
  auto found = document_in(files_of(made_turn({true, 0, true})), "sanitize/memcheck_summary.json");
  EXPECT_EQ(found["status"], "incomplete");
  EXPECT_EQ(found["clean"], false);
  EXPECT_EQ(found["findings"][0]["rule"], "memory_race");
  EXPECT_EQ(found["problems"][0], "memcheck: no time is left");
}

TEST(tool_documents, reports_are_files_whose_names_cannot_leave_their_folder) {
  auto files = files_of(made_turn(
      {true, 0, false, {{"ncu", "report.csv"}, {"ncu", "../../up"}, {"ncu", "report.csv"}}}));
  EXPECT_EQ(files["reports/ncu/report.csv"], "report 0");
  EXPECT_EQ(files["reports/ncu/_._.._up"], "report 1");
  EXPECT_EQ(files["reports/ncu/report.csv.2"], "report 2");
}

TEST(tool_documents, a_trace_and_an_output_stand_where_a_command_has_them) {
  bundles::tool_words tools;
  tools.trace = {{"status", "completed"}, {"tool", "nsys"}};
  tools.output = {{"kernels", json::array()}};
  auto files = files_of(made_turn({}), tools);
  EXPECT_EQ(document_in(files, "traces/system/summary.json")["tool"], "nsys");
  EXPECT_TRUE(document_in(files, "command/output.json").contains("kernels"));
  auto without = files_of(made_turn({}));
  EXPECT_EQ(document_in(without, "traces/system/summary.json")["status"], "not_run");
  EXPECT_FALSE(without.contains("command/output.json"));
}

inspecting::inspected recorded_cuda() {
  inspecting::inspected x{"sm_90", true, {}, {}, {}};
  listed_code code;
  code.file = "kernel.cu";
  code.source = read_golden("kernels_sm90.cu");
  code.ptx = read_golden("kernels_sm90_recorded.ptx");
  code.sass = read_golden("kernels_sm90_nvdisasm_gi_recorded.txt");
  x.codes.emplace_back(std::move(code));
  return x;
}

TEST(tool_documents, listings_fill_the_three_files_of_a_build) {
  bundles::tool_words tools;
  tools.listings = inspecting::listing_documents(recorded_cuda());
  tools.texts = inspecting::listing_texts(recorded_cuda());
  auto files = files_of(made_turn({}), tools);
  EXPECT_EQ(files["build/kernel.ptx"], read_golden("kernels_sm90_recorded.ptx"));
  EXPECT_TRUE(files.contains("build/kernel.sass"));
  auto view = document_in(files, "build/tri_view.json");
  ASSERT_GT(view["kernels"].size(), 0u) << view;
  auto summary = document_in(files, "build/source_map_summary.json")["kernels"][0];
  EXPECT_GT(summary["source_lines"], 0);
  EXPECT_GT(summary["ptx"]["with_line"], 0);
  EXPECT_LE(summary["sass"]["with_line"], summary["sass"]["instructions"]);
  auto map = document_in(files, "build/source_ptx_sass_map.json")["kernels"][0];
  EXPECT_EQ(map["lines"].size(), summary["source_lines"]);
  EXPECT_EQ(document_in(files_of(made_turn({})), "build/tri_view.json")["status"], "not_run");
}

} // namespace kernelmill::bundle_documents_test
