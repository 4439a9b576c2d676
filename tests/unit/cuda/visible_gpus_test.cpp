#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/cuda/visible_gpus.hpp"

using namespace kernelmill;
using testing::ElementsAre;
using testing::HasSubstr;

namespace cuda_visible_gpus_test {

std::vector<cuda::gpu> three() {
  std::vector<cuda::gpu> result(3);
  const char* uuids[] = {"GPU-aa11-0000", "GPU-aa22-0000", "GPU-bb33-0000"};
  for (unsigned i = 0; i < 3; ++i) {
    result[i].index = i;
    result[i].uuid = uuids[i];
  }
  return result;
}

std::vector<unsigned> shown(const char* list) {
  auto x = cuda::visible_gpus(three(), list);
  if (!x) {
    EXPECT_EQ(x.error().category, "no_gpu") << x.error().message;
    return {};
  }
  std::vector<unsigned> result;
  for (const auto& gpu : *x) result.push_back(gpu.index);
  return result;
}

TEST(visible_gpus, are_all_where_the_variable_is_unset) {
  EXPECT_THAT(shown(nullptr), ElementsAre(0, 1, 2));
}

TEST(visible_gpus, come_in_the_order_of_the_list) {
  EXPECT_THAT(shown("1"), ElementsAre(1));
  EXPECT_THAT(shown("2,0"), ElementsAre(2, 0));
  EXPECT_THAT(shown(" 2 , 1"), ElementsAre(2, 1));
}

TEST(visible_gpus, are_named_by_uuid_or_by_a_beginning_that_fits_one) {
  EXPECT_THAT(shown("GPU-bb33-0000,GPU-aa11-0000"), ElementsAre(2, 0));
  EXPECT_THAT(shown("GPU-b"), ElementsAre(2));
  EXPECT_THAT(shown("GPU-BB33-0000"), ElementsAre(2));
  EXPECT_THAT(shown("GPU-aa2,GPU-aa22"), ElementsAre()); // the same GPU twice
  EXPECT_THAT(shown("GPU-aa"), ElementsAre());           // two begin so
  EXPECT_THAT(shown("GPU-cc"), ElementsAre());
}

TEST(visible_gpus, are_all_named_in_the_form_of_the_first_entry) {
  EXPECT_THAT(shown("0,GPU-bb33-0000"), ElementsAre(0));
  EXPECT_THAT(shown("GPU-bb33-0000,0"), ElementsAre(2));
  EXPECT_THAT(shown("0,MIG-1c2b,1"), ElementsAre(0));
}

TEST(visible_gpus, are_numbered_as_strtol_reads) {
  EXPECT_THAT(shown("1gpu,0"), ElementsAre(1, 0));
  EXPECT_THAT(shown("+1"), ElementsAre(1));
  EXPECT_THAT(shown("01"), ElementsAre(1));
}

TEST(visible_gpus, end_at_the_first_entry_that_names_none) {
  EXPECT_THAT(shown("2,7,0"), ElementsAre(2));
  EXPECT_THAT(shown("1,-1,0"), ElementsAre(1));
  EXPECT_THAT(shown("1,,0"), ElementsAre(1));
  EXPECT_THAT(shown("0,"), ElementsAre(0));
  EXPECT_THAT(shown("GPU-aa1,GPU-ff,GPU-bb"), ElementsAre(0));
}

TEST(visible_gpus, are_none_for_an_empty_list_and_for_what_stands_for_none) {
  for (const char* list : {"", "-1", " ", "none", "NoDevFiles", "3", "99999999999", "0,0"})
    EXPECT_THAT(shown(list), ElementsAre()) << list;
}

TEST(visible_gpus, that_are_none_are_told_with_the_list_and_a_next_step) {
  auto x = cuda::visible_gpus(three(), "7");
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().cls, fault_class::infrastructure);
  EXPECT_THAT(x.error().message, HasSubstr("CUDA_VISIBLE_DEVICES=\"7\" shows none of 3"));
  EXPECT_THAT(x.error().hint, HasSubstr("nvidia-smi -L"));
}

// Not the whole GPU in its place: a scheduler gave the rest to others.
TEST(visible_gpus, that_are_mig_instances_are_refused) {
  for (const char* list : {"MIG-1c2b", "MIG-1c2b,MIG-77"}) {
    auto x = cuda::visible_gpus(three(), list);
    ASSERT_FALSE(x) << list;
    EXPECT_EQ(x.error().category, "unsupported_gpu");
    EXPECT_THAT(x.error().message, HasSubstr("MIG-1c2b is a MIG instance"));
  }
}

} // namespace cuda_visible_gpus_test
