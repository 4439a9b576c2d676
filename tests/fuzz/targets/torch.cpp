// Answers of the torch referee. It is ours, but what it reports was measured beside a candidate; a
// word that is none must end the evaluation, never the process. Each line of the input is the
// answer to the next question; then there are no more.

#include "gpu/referee/machine.hpp"
#include "gpu/torch/torch_evaluation.hpp"
#include "gpu/torch/torch_lane.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill {

namespace {

std::vector<std::string> answers;
size_t next_answer = 0;

} // namespace

// In place of the processes behind the lane: this program is linked without torch_lane.cpp.
torch_lane::torch_lane(spawner& processes, sandbox& walls, torch_lane_options options)
    : processes_(processes), walls_(walls), options_(std::move(options)) {
  // nop
}

torch_lane::~torch_lane() = default;

void torch_lane::note_ends(int) {
  ended_by_others_ = answers.size() % 2 == 1;
}

void torch_lane::forget_ends() {
  ended_by_others_ = false;
}

expected<nlohmann::json> torch_lane::ask(const nlohmann::json&, int, const std::vector<int>&) {
  if (next_answer >= answers.size())
    return infrastructure_error("python_failed", "failed to judge with Python: it ended");
  const auto& text = answers[next_answer++];
  auto answer = nests_deeper(text) ? nlohmann::json{} : nlohmann::json::parse(text, nullptr, false);
  if (!answer.is_object())
    return infrastructure_error("python_failed", "failed to judge with Python: no answer");
  return answer;
}

namespace fuzz {

namespace {

Message<wire::EvaluateRequest> request_of(bool timed) {
  return build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
    x.setTaskDir(KERNELMILL_FUZZ_TASKS "/torch/mean_square");
    x.setLibraryPath("/dev/null");
    x.setLanguage("cuda");
    x.initTiming().setEnabled(timed);
  });
}

} // namespace

void torch(std::string_view bytes) {
  alignas(8) static char nowhere[64];
  static machine hardware{{0}};
  torch_lane lane{reinterpret_cast<spawner&>(nowhere), reinterpret_cast<sandbox&>(nowhere), {}};
  bool timed = (take_byte(bytes) & 1) != 0;
  answers = lines_of(bytes, 64);
  next_answer = 0;
  auto request = request_of(timed);
  auto result = evaluate_torch({lane, hardware, nullptr}, *request.open());
  read_all(*result.open());
  next_answer = 0;
  read_all(
      *check_torch({lane, hardware, nullptr}, KERNELMILL_FUZZ_TASKS "/torch/mean_square").open());
}

} // namespace fuzz

} // namespace kernelmill
