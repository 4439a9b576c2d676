// Databases of rocprofv3 --output-format rocpd, made here by the schema of rocprofiler-sdk
// (source/share/rocprofiler-sdk-rocpd, schema 3): tables whose names end with a number, and views
// over them. The views have the columns that are read, and some that are not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/profiler/trace_database.hpp"
#include "tests/unit/profiler/made_database.hpp"

using namespace kernelmill;
using testing::ElementsAre;
using testing::HasSubstr;

namespace rocpd_test {

// ROCm 7.0 and 7.1: times stand with the dispatch, agents are agent_abs_index.
const std::string rocm_7_0 = R"(
  CREATE TABLE "rocpd_metadata_0001f" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "tag" TEXT NOT NULL, "value" TEXT NOT NULL);
  INSERT INTO "rocpd_metadata_0001f" (tag, value) VALUES ("schema_version", "3"),
    ("uuid", "_0001f");
  CREATE TABLE "rocpd_string_0001f" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "guid" TEXT DEFAULT "g" NOT NULL, "string" TEXT NOT NULL UNIQUE ON CONFLICT ABORT);
  INSERT INTO "rocpd_string_0001f" (id, string) VALUES (1, 'MEMORY_COPY_HOST_TO_DEVICE'),
    (2, 'MEMORY_COPY_DEVICE_TO_HOST');
  CREATE TABLE "rocpd_info_agent_0001f" (id INTEGER PRIMARY KEY, type TEXT, absolute_index INTEGER,
    "extdata" JSONB DEFAULT "{}" NOT NULL);
  INSERT INTO "rocpd_info_agent_0001f" VALUES (1, 'CPU', 0, '{}'), (2, 'GPU', 4, '{"cus":304}');
  CREATE TABLE "rocpd_info_kernel_symbol_0001f" (id INTEGER PRIMARY KEY, display_name TEXT,
    group_segment_size INTEGER, arch_vgpr_count INTEGER, "extdata" JSONB DEFAULT "{}" NOT NULL);
  INSERT INTO "rocpd_info_kernel_symbol_0001f" VALUES
    (1, 'addition_kernel(float*, int)', 0, 8, '{"kernel_id": 9}'), (2, 'divide(float*)', 0, 12, '{}');
  CREATE TABLE "rocpd_kernel_dispatch_0001f" (id INTEGER PRIMARY KEY, agent_id INTEGER,
    kernel_id INTEGER, dispatch_id INTEGER, start BIGINT, end BIGINT, group_segment_size INTEGER,
    workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER,
    grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER);
  INSERT INTO "rocpd_kernel_dispatch_0001f" VALUES
    (1, 2, 1, 1, 2414192765353337, 2414192765369494, 4096, 64, 1, 1, 1024, 1000, 1),
    (2, 2, 1, 2, 2414192765424862, 2414192765435326, 0, 64, 1, 1, 1024, 1, 1),
    (3, 2, 2, 3, 2414192765487486, 2414192765497669, 0, 64, 2, 1, 1000, 3, 1);
  CREATE TABLE "rocpd_memory_copy_0001f" (id INTEGER PRIMARY KEY, start BIGINT, end BIGINT,
    name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER);
  INSERT INTO "rocpd_memory_copy_0001f" VALUES
    (1, 2414192765360000, 2414192765380000, 1, 2, 1, 4194304),
    (2, 2414192765500000, 2414192765510000, 2, 1, 2, 1024);
  CREATE VIEW `rocpd_metadata` AS SELECT * FROM `rocpd_metadata_0001f`;
  CREATE VIEW `kernels` AS SELECT K.id, S.display_name AS name, A.absolute_index AS agent_abs_index, K.dispatch_id, K.start, K.end,
    (K.end - K.start) AS duration, K.grid_size_x AS grid_x, K.grid_size_y AS grid_y,
    K.grid_size_z AS grid_z, K.workgroup_size_x AS workgroup_x, K.workgroup_size_y AS workgroup_y,
    K.workgroup_size_z AS workgroup_z, K.group_segment_size AS lds_size
    FROM `rocpd_kernel_dispatch_0001f` K
    INNER JOIN `rocpd_info_agent_0001f` A ON A.id = K.agent_id
    INNER JOIN `rocpd_info_kernel_symbol_0001f` S ON S.id = K.kernel_id;
  CREATE VIEW `kernel_symbols` AS SELECT S.id,
    json_extract(S.extdata, '$.kernel_id') AS kernel_id FROM `rocpd_info_kernel_symbol_0001f` S;
  CREATE VIEW `memory_copies` AS SELECT M.id, M.start, M.end, (M.end - M.start) AS duration,
    N.string AS name, M.size, D.absolute_index AS dst_agent_abs_index, D.type AS dst_agent_type,
    S.absolute_index AS src_agent_abs_index, S.type AS src_agent_type
    FROM `rocpd_memory_copy_0001f` M INNER JOIN `rocpd_string_0001f` N ON N.id = M.name_id
    INNER JOIN `rocpd_info_agent_0001f` D ON D.id = M.dst_agent_id
    INNER JOIN `rocpd_info_agent_0001f` S ON S.id = M.src_agent_id;
)";

TEST(Rocpd, DispatchesAreReadThroughTheViews) {
  made_database file{rocm_7_0};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->tool, trace_tool::rocpd);
  EXPECT_EQ(x->version, "3");
  EXPECT_EQ(x->launches, 3u);
  ASSERT_EQ(x->kernels.size(), 2u);
  const auto& add = x->kernels[0];
  EXPECT_EQ(add.kernel, "addition_kernel(float*, int)");
  EXPECT_EQ(add.calls, 2u);
  EXPECT_EQ(add.times->total_ns, 16'157u + 10'464u);
  EXPECT_EQ(add.times->max_ns, 16'157u);
  EXPECT_EQ(add.shape.block, (extent{64, 1, 1}));
  EXPECT_EQ(add.shape.grid, (extent{16, 1000, 1})) << "workgroups, not work-items";
  EXPECT_EQ(add.shape.shared, 4096u);
  EXPECT_FALSE(add.shape.registers) << "this version's view does not tell";
  EXPECT_EQ(x->kernels[1].shape.grid, (extent{16, 2, 1})) << "the last workgroup is not full";
  ASSERT_EQ(x->devices.size(), 1u);
  EXPECT_EQ(x->devices[0].device, 4);
  EXPECT_EQ(x->devices[0].copy_ns, 30'000u);
  EXPECT_EQ(x->devices[0].overlap_ns, 9'494u);
  ASSERT_EQ(x->copies.size(), 2u);
  EXPECT_EQ(x->copies[0].kind, "MEMORY_COPY_HOST_TO_DEVICE");
  EXPECT_EQ(x->copies[0].bytes, 4194304u);
}

// Since then agents are agent_absolute_index, and the view tells registers.
TEST(Rocpd, NewerNamesOfColumnsAreRead) {
  made_database file{"CREATE TABLE k (name, agent_absolute_index, start, end, grid_x, grid_y, "
                     "grid_z, workgroup_x, workgroup_y, workgroup_z, lds_size, arch_vgpr_count);"
                     "INSERT INTO k VALUES ('f', 3, 100, 300, 128, 1, 1, 64, 1, 1, 0, 24);"
                     "CREATE VIEW kernels AS SELECT * FROM k"};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->devices.at(0).device, 3);
  EXPECT_EQ(x->kernels.at(0).shape.registers, 24u);
}

TEST(Rocpd, CountersAreSummedOverInstancesOfADispatch) {
  made_database file{rocm_7_0 + "CREATE TABLE c (kernel_name, dispatch_id, counter_name, value, "
                                "agent_abs_index); INSERT INTO c VALUES "
                                "('divide(float*)', 3, 'SQ_WAVES', 100.0, 4),"
                                "('divide(float*)', 3, 'SQ_WAVES', 60.0, 4),"
                                "('divide(float*)', 5, 'SQ_WAVES', 40, 4),"
                                "('divide(float*)', 5, 'SQ_WAVES', 'many', 4),"
                                "('divide(float*)', 5, 'GRBM_COUNT', 9e999, 4);"
                                "CREATE VIEW counters_collection AS SELECT * FROM c"};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  const auto& counters = x->kernels.at(1).counters;
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0].name, "SQ_WAVES");
  EXPECT_EQ(counters[0].dispatches, 2u);
  EXPECT_DOUBLE_EQ(counters[0].mean, 100);
  EXPECT_DOUBLE_EQ(counters[0].min, 40);
  EXPECT_DOUBLE_EQ(counters[0].max, 160);
  EXPECT_TRUE(x->devices.empty());
  EXPECT_THAT(x->notes, ElementsAre(HasSubstr("one by one"), HasSubstr("2 rows were left out")));
}

TEST(Rocpd, NewerViewsOfCountersAreRead) {
  made_database file{rocm_7_0 + "CREATE VIEW kernel_pmc_events AS SELECT 'divide(float*)' AS name, "
                                "3 AS dispatch_id, 'SQ_WAVES' AS pmc_name, 7.0 AS pmc_value, "
                                "4 AS agent_absolute_index"};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->kernels.at(1).counters.at(0).max, 7);
}

TEST(Rocpd, ATraceWithoutDispatchesIsAProblemOfTheReport) {
  made_database file{"CREATE TABLE rocpd_metadata_1 (tag TEXT, value TEXT);"
                     "CREATE VIEW rocpd_metadata AS SELECT * FROM rocpd_metadata_1"};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->problem, trace_problem::no_kernels);
  EXPECT_THAT(x->words, HasSubstr("no view `kernels`"));
}

TEST(Rocpd, AViewOfAMissingTableIsAnError) {
  made_database file{rocm_7_0 + "DROP TABLE \"rocpd_kernel_dispatch_0001f\""};
  auto x = read_trace_database(file.path());
  ASSERT_FALSE(x);
  EXPECT_THAT(x.error().message, HasSubstr("rocpd_kernel_dispatch_0001f"));
}

} // namespace rocpd_test
