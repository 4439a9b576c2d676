#include "storage/export/harbor_files.hpp"

#include <fmt/format.h>

#include "messages/base/json_value.hpp"

namespace kernelmill::exports {

namespace {

/// The file in which Harbor and the agent look for the answer.
std::string answer_file(const harbor_task& x) {
  if (x.contract == "torch") return "/app/candidate.py";
  return x.backend == "cpu" ? "/app/kernel.cpp" : "/app/kernel.cu";
}

std::string quoted_toml(const std::string& text) {
  return nlohmann::json(text).dump(); // a TOML basic string has the escapes of JSON
}

std::string task_toml(const harbor_task& x, const std::string& run, const std::string& program) {
  return fmt::format("version = \"1.0\"\n\n[metadata]\nkernelmill_task = {}\ntask_digest = {}\n"
                     "run = {}\nmade_by = {}\n\n[agent]\ntimeout_sec = 1800.0\n\n[verifier]\n"
                     "timeout_sec = 900.0\n\n[environment]\nbuild_timeout_sec = 1200.0\n{}",
                     quoted_toml(x.id), quoted_toml(x.digest), quoted_toml(run),
                     quoted_toml("kernelmill " + program), x.backend == "cpu" ? "" : "gpus = 1\n");
}

std::string instruction_of(const harbor_task& x) {
  return x.instruction + (x.instruction.ends_with('\n') ? "" : "\n") +
         fmt::format("\nWrite the code to `{}`, without tags around it. It is judged by what is in "
                     "that file when you stop.\n",
                     answer_file(x));
}

std::string dockerfile() {
  return "# KERNELMILL_IMAGE has `kernelmill` and a compiler: launch/tools/compose/Containerfile "
         "makes "
         "one.\n"
         "ARG KERNELMILL_IMAGE=kernelmill:latest\n"
         "FROM ${KERNELMILL_IMAGE}\n"
         "WORKDIR /app\n";
}

// The task's files come with the tests, so that the agent sees no hidden case.
std::string test_sh(const harbor_task& x) {
  return fmt::format(
      "#!/bin/sh\n"
      "# Judges the answer and writes its reward; a fault of the machine writes none and ends with "
      "1.\n"
      "set -u\n"
      "here=$(cd \"$(dirname \"$0\")\" && pwd)\n"
      "logs=${{HARBOR_LOGS:-/logs/verifier}}\n"
      "answer=${{HARBOR_ANSWER:-{}}}\n"
      "mkdir -p \"$logs\"\n"
      "if [ ! -f \"$answer\" ]; then\n"
      "  echo 0 > \"$logs/reward.txt\"\n"
      "  exit 0\n"
      "fi\n"
      "kernelmill eval --task {} --root \"$here/tasks\" --backend {} --json \"$answer\" > "
      "\"$logs/verdict.json\"\n"
      "code=$?\n"
      "reward=$(sed -n 's/^ *\"reward\": *\\([-0-9.eE+]*\\),*$/\\1/p' \"$logs/verdict.json\" | "
      "head -n 1)\n"
      "if [ -z \"$reward\" ]; then\n"
      "  what=\"no verdict\"\n"
      "  grep -q '^ *\"category\": *\"not_timed\"' \"$logs/verdict.json\" && what=\"not timed\"\n"
      "  echo \"$what (exit code $code)\" >&2\n"
      "  exit 1\n"
      "fi\n"
      "echo \"$reward\" > \"$logs/reward.txt\"\n",
      answer_file(x), x.id, x.backend);
}

} // namespace

expected<std::optional<harbor_task>> harbor_task_of(const admitted_group& from,
                                                    const artifact_store& artifacts) {
  for (const auto& episode : from->episodes) {
    if (episode.turns.empty()) continue;
    auto view = episode.turns.front().open();
    auto turn = view->getTurn();
    if (turn.getTurn() != 0) continue;
    auto facts = turn.getFacts();
    harbor_task result{
        turn.getEpisode().getTask(), {}, {}, facts.getContract(), facts.getBackend()};
    for (auto part : turn.getPrompt()) {
      if (part.getRole() != "user") continue;
      auto words = artifacts.text(part.getContent());
      KM_TRY(words);
      result.instruction += *words;
    }
    return result;
  }
  return std::nullopt;
}

std::vector<harbor_file> harbor_files(const harbor_task& x, const std::string& run,
                                      const std::string& program) {
  return {{"task.toml", task_toml(x, run, program)},
          {"instruction.md", instruction_of(x)},
          {"environment/Dockerfile", dockerfile()},
          {"tests/test.sh", test_sh(x), true}};
}

} // namespace kernelmill::exports
