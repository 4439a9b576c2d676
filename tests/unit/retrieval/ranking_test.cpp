#include <gtest/gtest.h>

#include "retrieval/search/hashed_lexical_embedder.hpp"
#include "retrieval/search/index.hpp"
#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill {

namespace ranking_test {

struct question {
  const char* text;
  const char* family;
  const char* want; ///< the card that must be among the first three
};

// Written as a task's prompt or a profiler's card would put it.
const question questions[] = {
    {"Sum each row of a row-major float matrix", "reduction", "row-reduction"},
    {"Numerically stable softmax over every row of a matrix", "softmax", "softmax"},
    {"Layer normalization with gamma and beta", "normalization", "layer-norm"},
    {"RMSNorm of a batch of vectors, scaled by a weight", "normalization", "rms-norm"},
    {"GELU in its erf form, element by element", "elementwise", "elementwise-activation"},
    {"Multiply two dense matrices, C = A * B", "matmul", "matmul"},
    {"Transpose a row-major matrix", "layout", "transpose"},
    {"Inclusive prefix sum of an array", "scan", "inclusive-scan"},
    {"For each token pick the expert with the largest logit, lowest index on ties", "routing",
     "argmax"},
    {"Top-k experts of each token, weights by softmax over the chosen", "routing", "top-k"},
    {"Scaled attention scores q k^T with a causal mask", "attention", "attention-score"},
    {"Copy keys and values out of a paged KV cache through a block table", "gather",
     "kv-cache-gather"},
    {"Count how often each bin occurs in an array of integers", "histogram", "histogram"},
    {"Repair the masked row reduction: only selected elements count", "masked_reduction",
     "masked-reduction"},
    {"Rewrite the three-pass softmax as an online softmax with fewer passes", "softmax",
     "online-softmax"},
    {"A column sum that walks memory in the wrong order", "reduction", "column-reduction"},
    {"threads write partial sums to neighbouring slots of one cache line", "", "false-sharing"},
    {"registers spill to the stack in the inner loop", "", "register-spills"},
    {"bound by memory bandwidth", "", "memory-bandwidth-bound"},
};

struct device_question {
  const char* text;
  const char* backend;
  const char* want;
};

// What a writer of kernels for GPUs, of Triton or of PyTorch asks for.
const device_question device_questions[] = {
    {"Triton kernel: which num_stages and num_warps for the dot loop", "cuda", "triton-num-stages"},
    {"autotune a Triton kernel over block sizes", "cuda", "triton-autotune"},
    {"Triton matrix product in float32 loses accuracy with tf32", "cuda", "triton-dot-precision"},
    {"load tiles with TMA and an mbarrier on Hopper", "cuda", "cuda-tma-tile"},
    {"wgmma with shared memory descriptors on sm_90a", "cuda", "cuda-wgmma"},
    {"thread block cluster with distributed shared memory", "cuda", "cuda-cluster-dsmem"},
    {"dequantise int4 weights to half in a CUDA kernel", "cuda", "cuda-int4-to-half"},
    {"ldmatrix swizzle against bank conflicts", "cuda", "cuda-ldmatrix-swizzle"},
    {"single-pass prefix sum with decoupled look-back", "cuda", "cuda-decoupled-look-back"},
    {"MFMA matrix core instruction for fp16 tiles on CDNA3", "hip", "hip-mfma-f16"},
    {"port CUDA warp code with 32 lanes to wavefronts of 64", "hip", "hip-wave64"},
    {"fold BatchNorm into Conv2d for inference in PyTorch", "cuda", "torch-fold-batch-norm"},
    {"torch.nn scaled dot product attention with causal mask in PyTorch", "cuda", "torch-sdpa"},
    {"int8 dot product with AVX-512 VNNI", "cpu", "cpu-int8-vnni"},
    {"OpenMP schedule for a triangular causal loop", "cpu", "cpu-triangular-schedule"},
};

std::string list(const retrieval_answer& x) {
  std::string result;
  for (const auto& hit : x.results) result += hit.entry.id + " ";
  return result;
}

bool among(const retrieval_answer& x, const std::string& id) {
  for (const auto& hit : x.results)
    if (hit.entry.id == id) return true;
  return false;
}

TEST(Ranking, TheCardOnTheSubjectIsAmongTheFirstThree) {
  auto index = loaded_index::in_memory(test::knowledge_folder(), {},
                                       std::make_shared<hashed_lexical_embedder>());
  ASSERT_TRUE(index) << test::failure(index);
  for (const auto& q : questions) {
    auto got = index->query(about(q.text, 3, {}, q.family, "cpu"));
    ASSERT_TRUE(got) << test::failure(got);
    EXPECT_TRUE(among(*got, std::string{"card:"} + q.want)) << q.text << ": " << list(*got);
  }
}

TEST(Ranking, QuestionsOfTheirWritersFindCardsOnDevicesAndLibraries) {
  auto index = loaded_index::in_memory(test::knowledge_folder(), {},
                                       std::make_shared<hashed_lexical_embedder>());
  ASSERT_TRUE(index) << test::failure(index);
  for (const auto& q : device_questions) {
    auto got = index->query(about(q.text, 3, {}, {}, q.backend));
    ASSERT_TRUE(got) << test::failure(got);
    EXPECT_TRUE(among(*got, std::string{"card:"} + q.want)) << q.text << ": " << list(*got);
  }
}

TEST(Ranking, FamilyAndBackendLiftAnEntryModestly) {
  auto index = loaded_index::in_memory(test::knowledge_folder(), {},
                                       std::make_shared<hashed_lexical_embedder>());
  ASSERT_TRUE(index) << test::failure(index);
  auto plain = index->query(about("bank conflicts in shared memory", 1));
  auto lifted =
      index->query(about("bank conflicts in shared memory", 1, {}, "elementwise", "cuda"));
  ASSERT_TRUE(plain && lifted);
  EXPECT_EQ(plain->results[0].entry.id, "card:shared-memory-bank-conflicts");
  EXPECT_EQ(lifted->results[0].entry.id, "card:shared-memory-bank-conflicts")
      << "a clear match wins over family and backend";
  auto boosted = index->query(about("bank conflicts in shared memory", 1, {}, "transpose", "cuda"));
  ASSERT_TRUE(boosted);
  EXPECT_NEAR(boosted->results[0].score - plain->results[0].score, family_boost + backend_boost,
              1e-5);
}

} // namespace ranking_test
} // namespace kernelmill
