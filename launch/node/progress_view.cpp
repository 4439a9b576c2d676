#include "launch/node/progress_view.hpp"

#include <algorithm>
#include <string_view>

namespace kernelmill {

namespace {

uint64_t number_of(wire::Snapshot::Reader snapshot, std::string_view name) {
  for (auto number : snapshot.getNumbers())
    if (name == number.getName().cStr()) return static_cast<uint64_t>(number.getValue());
  return 0;
}

// The pool shows its servers, and each of them its client's requests.
void read_tried_again(progress& into, wire::Snapshot::Reader x) {
  if (x.getActor() == "policy_request") {
    ++into.tried_again;
    auto attempts = static_cast<uint32_t>(number_of(x, "attempts"));
    if (attempts <= into.attempts) return;
    into.attempts = attempts;
    into.last_error = x.getDetail().cStr();
  }
  for (auto child : x.getChildren()) read_tried_again(into, child);
}

} // namespace

void read_policy(progress& into, wire::Snapshot::Reader policy) {
  into.at_policy = 0;
  for (const char* name : {"in_flight", "queued", "backing_off", "waiting"})
    into.at_policy += number_of(policy, name);
  into.waiting += into.at_policy - number_of(policy, "in_flight");
  read_tried_again(into, policy);
}

void read_cluster(progress& into, wire::Snapshot::Reader cluster) {
  into.builds = number_of(cluster, "builds_done");
  into.evaluations = number_of(cluster, "evaluations_done");
  into.at_build = number_of(cluster, "builds_leased") + number_of(cluster, "builds_waiting");
  // A worker is leased jobs ahead, and a profile waits at the slot that counts for it: no more are
  // at work than there are workers.
  auto at_work = [&](uint64_t leased, const char* workers) {
    return std::min(leased, number_of(cluster, workers));
  };
  auto given = number_of(cluster, "evaluations_leased") + number_of(cluster, "profiles_leased");
  into.in_slots = at_work(given, "runners");
  into.at_slot = number_of(cluster, "evaluations_waiting") +
                 number_of(cluster, "profiles_waiting") + given - into.in_slots;
  auto builds = number_of(cluster, "builds_leased");
  into.waiting +=
      number_of(cluster, "builds_waiting") + into.at_slot + builds - at_work(builds, "compilers");
}

} // namespace kernelmill
