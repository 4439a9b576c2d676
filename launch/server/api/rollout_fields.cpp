#include "launch/server/api/rollout_fields.hpp"

namespace kernelmill::services {

namespace {

constexpr bool must = true;
constexpr bool or_null = true;

const fields& rollouts_fields() {
  static const fields all{
      {"schema_version", kind::whole, "Of this document.", must},
      {"id", kind::text, "What to ask for it by.", must},
      {"run", kind::text, "The run that makes the groups.", must},
      {"state",
       kind::text,
       "`held`: max_ready groups wait for a trainer. `waiting`: `trouble` keeps the run from going "
       "on. `settled`: no other group will come.",
       must,
       false,
       {"running", "held", "waiting", "settled", "cancelled"}},
      {"over", kind::flag, "No more groups follow, unless a trainer rolls back.", must},
      {"requested", kind::whole, "Groups: the sum of those in `groups`.", must},
      {"groups", kind::object, "How many are in which state.", must, false, {}, "RolloutCounts"},
      {"dropped", kind::object, "How many were dropped, by reason.", must},
      {"group_size", kind::whole, "Episodes of a group.", must},
      {"form", kind::text, "Of the rows.", must},
      {"max_off_policy", kind::whole, "Null: groups of any version are given.", must, or_null},
      {"max_ready", kind::whole, "0: any number may wait.", must},
      {"deadline_s", kind::number, "Seconds since 1970; null: none.", must, or_null},
      {"trouble", kind::text,
       "Why the run does not go on; it is tried again, and this stays until a group is there.",
       must, or_null}};
  return all;
}

const fields& rollout_list_fields() {
  static const fields all{{"schema_version", kind::whole, "Of this document.", must},
                          {"rollouts", kind::list, "By id.", must, false, {}, "Rollouts"}};
  return all;
}

const fields& count_fields() {
  static const fields all{{"open", kind::whole, "In the making.", must},
                          {"ready", kind::whole, "Wait for a trainer.", must},
                          {"leased", kind::whole, "A trainer has them.", must},
                          {"acked", kind::whole, "A trainer has learned from them.", must},
                          {"committed", kind::whole, "A checkpoint holds what was learned.", must},
                          {"dropped", kind::whole, "No trainer will get them.", must}};
  return all;
}

const fields& batch_fields() {
  static const fields all{
      {"schema_version", kind::whole, "Of this document.", must},
      {"order", kind::text, "", must},
      {"lease", kind::whole, "To acknowledge by; null: there are no groups now.", must, or_null},
      {"consumer", kind::text, "", must},
      {"generation", kind::whole, "Of the consumer.", must},
      {"until_s", kind::number, "When the lease expires, in seconds since 1970.", must, or_null},
      {"over", kind::flag, "No more groups follow, unless a trainer rolls back.", must},
      {"groups", kind::list, "", must, false, {}, "RolloutGroup"}};
  return all;
}

const fields& group_fields() {
  static const fields all{
      {"id", kind::text, "To acknowledge it by.", must},
      {"requested", kind::whole, "Episodes that it was to have.", must},
      {"delivered", kind::whole, "Episodes with rows.", must},
      {"min_version", kind::text, "Oldest weights that made its tokens.", must, or_null},
      {"max_version", kind::text, "Newest weights that made its tokens.", must, or_null},
      {"rows", kind::list, "docs/reference/exports.md has the fields of each form.", must}};
  return all;
}

const fields& acknowledged_fields() {
  static const fields all{
      {"schema_version", kind::whole, "Of this document.", must},
      {"lease", kind::whole, "", must},
      {"optimizer_step", kind::whole, "", must},
      {"left", kind::whole, "Groups of the lease that are not acknowledged.", must}};
  return all;
}

const fields& consumer_fields() {
  static const fields all{{"schema_version", kind::whole, "Of this document.", must},
                          {"consumer", kind::text, "", must},
                          {"generation", kind::whole, "To ask by from now on.", must},
                          {"committed_step", kind::whole, "Null: none.", must, or_null},
                          {"acknowledged", kind::whole, "Groups of later steps.", must}};
  return all;
}

const fields& declared_fields() {
  static const fields all{{"schema_version", kind::whole, "Of this document.", must},
                          {"version", kind::text, "", must},
                          {"ordinal", kind::whole, "How many versions were declared.", must},
                          {"servers",
                           kind::list,
                           "Servers that have loaded it now; none without `path`.",
                           must,
                           false,
                           {},
                           "WeightsLoaded"}};
  return all;
}

const fields& loaded_fields() {
  static const fields all{
      {"base_url", kind::text, "", must},
      {"kind", kind::text, "", must},
      {"weight_version", kind::text,
       "Version that it reports with its tokens from now on; null: it reports none.", must,
       or_null}};
  return all;
}

} // namespace

const fields& rollout_order_fields() {
  static const fields all{
      {"id", kind::text,
       "Name of the order and of its run. The same order with the same id is one order. Default: a "
       "new name."},
      {"tasks", kind::list, "Ids of tasks, or patterns of ids such as `native/*`.", must},
      {"groups", kind::whole, "Groups of each task. Default 1."},
      {"group_size", kind::whole, "Episodes of a group. Default 4."},
      {"quorum", kind::whole,
       "Usable episodes after which the rest of a group is dropped. Default 0: all are waited "
       "for."},
      {"max_turns", kind::whole, "Of an episode."},
      {"seed", kind::whole, "Of the run."},
      {"sampling", kind::object,
       "temperature, top_p, max_tokens, seed, stop, logprobs: as `policy.sampling` of a "
       "configuration."},
      {"policy", kind::object,
       "The server that is asked: kind, base_url, model, tokens and others, as `policy` of a "
       "configuration; `key` names a key that the operator lists for this address."},
      {"config", kind::object,
       "More of the configuration, by section; nothing that names a file, a program, a variable "
       "or an address of the server's machine."},
      {"form", kind::text, "Of the rows; docs/reference/exports.md lists them. Default `rl`."},
      {"max_off_policy", kind::whole,
       "How many versions older than the latest a group's weights may be when it is given. "
       "Default: "
       "any."},
      {"max_ready", kind::whole,
       "Maximum number of groups that wait for a trainer; more are not begun. 0: any number. "
       "Default 64."},
      {"deadline_s", kind::number, "Seconds from now after which the order waits for no group."}};
  return all;
}

const fields& rollout_ack_fields() {
  static const fields all{
      {"lease", kind::whole, "", must},
      {"groups", kind::list, "Ids of groups. Default: all of the lease."},
      {"optimizer_step", kind::whole, "The step that is about to learn from them.", must}};
  return all;
}

const fields& rollout_commit_fields() {
  static const fields all{
      {"consumer", kind::text, "", must},
      {"generation", kind::whole, "As the latest rollback said. Default 0."},
      {"optimizer_step", kind::whole, "The latest step that a durable checkpoint holds.", must}};
  return all;
}

const fields& rollout_rollback_fields() {
  static const fields all{
      {"consumer", kind::text, "", must},
      {"optimizer_step", kind::whole,
       "The step of the checkpoint that the trainer continues from; -1: it starts over.", must}};
  return all;
}

const fields& weights_fields() {
  static const fields all{
      {"version", kind::text,
       "Name of the version that the policy servers have from now on, as they report it.", must},
      {"path", kind::text,
       "Folder of the checkpoint, as the servers see it: they are made to load it. Default: they "
       "have it already."},
      {"adapter", kind::text, "Name of the LoRA adapter that `path` is. Default: whole weights."},
      {"servers",
       kind::list,
       "Default: vLLM and SGLang servers of orders under way.",
       false,
       false,
       {},
       "WeightsServer"}};
  return all;
}

const fields& weights_server_fields() {
  static const fields all{
      {"kind", kind::text, "", must, false, {"vllm", "sglang", "llamacpp", "openai"}},
      {"base_url", kind::text,
       "As of a policy: http://host:port/v1. Default: the address of `key`."},
      {"api_key", kind::text, "Sent as a bearer token; never stored."},
      {"key", kind::text,
       "In its place: the name of a key that the operator lists for this address."}};
  return all;
}

std::vector<schema> rollout_schemas() {
  return {{"RolloutOrder", "What is to be rolled out.", rollout_order_fields()},
          {"Rollouts", "Where an order stands.", rollouts_fields()},
          {"RolloutList", "All orders.", rollout_list_fields()},
          {"RolloutCounts", "Groups by state.", count_fields()},
          {"RolloutBatch", "Groups that a trainer has until the lease expires.", batch_fields()},
          {"RolloutGroup", "The episodes of one task that are compared with each other.",
           group_fields()},
          {"RolloutAck", "Groups that a step learns from.", rollout_ack_fields()},
          {"RolloutAcknowledged", "They are that step's.", acknowledged_fields()},
          {"RolloutCommit", "A checkpoint is durable.", rollout_commit_fields()},
          {"RolloutRollback", "A trainer goes on from a checkpoint.", rollout_rollback_fields()},
          {"RolloutConsumer", "A trainer, as the server knows it.", consumer_fields()},
          {"Weights", "A new version of the weights.", weights_fields()},
          {"WeightsServer", "A policy server that is to load weights.", weights_server_fields()},
          {"WeightsDeclared", "It is known.", declared_fields()},
          {"WeightsLoaded", "A policy server that has loaded weights.", loaded_fields()}};
}

// 404 for all: a server without --runs has none of them.
std::vector<operation> rollout_operations() {
  return {
      {"order_rollouts",
       "POST",
       "/v1/rollouts",
       "Orders groups of episodes. The answer comes when the run has begun.",
       {},
       "RolloutOrder",
       "Rollouts",
       false,
       {404, 409}},
      {"list_rollouts", "GET", "/v1/rollouts", "All orders.", {}, "", "RolloutList", false, {404}},
      {"rollout_batch",
       "GET",
       "/v1/rollouts/batch",
       "Leases groups that have ended: as many as are asked for, or the last ones. Waits for them.",
       {{"order", kind::text, "Id of the order."},
        {"consumer", kind::text, "Name of the trainer."},
        {"generation", kind::whole, "As its latest rollback said. Default 0."},
        {"request", kind::text,
         "The trainer's name for this request: asked again, it gets the same lease while that is "
         "open."},
        {"groups", kind::whole, "How many. Default 1."},
        {"wait_s", kind::number, "Time to wait for them in seconds, at most 600. Default 0."},
        {"lease_s", kind::number,
         "Seconds without an acknowledgement after which they are given to others. Default 600."}},
       "",
       "RolloutBatch",
       false,
       {404, 409}},
      {"rollouts",
       "GET",
       "/v1/rollouts/{id}",
       "Where an order stands.",
       {},
       "",
       "Rollouts",
       false,
       {404}},
      {"cancel_rollouts",
       "DELETE",
       "/v1/rollouts/{id}",
       "Ends the run and drops what no trainer has.",
       {},
       "",
       "Rollouts",
       false,
       {404}},
      {"ack_rollouts",
       "POST",
       "/v1/rollouts/ack",
       "Acknowledges groups, before the optimizer's step that learns from them.",
       {},
       "RolloutAck",
       "RolloutAcknowledged",
       false,
       {404, 409}},
      {"commit_rollouts",
       "POST",
       "/v1/rollouts/commit",
       "Commits what was acknowledged up to a step, after its checkpoint is durable.",
       {},
       "RolloutCommit",
       "RolloutConsumer",
       false,
       {404, 409}},
      {"roll_back_rollouts",
       "POST",
       "/v1/rollouts/rollback",
       "A trainer starts from a checkpoint: what it learned after it is ready again, and earlier "
       "users of its name are rejected.",
       {},
       "RolloutRollback",
       "RolloutConsumer",
       false,
       {404}},
      {"declare_weights",
       "POST",
       "/v1/weights",
       "Declares a new version of the weights, and has policy servers load it.",
       {},
       "Weights",
       "WeightsDeclared",
       false,
       {404}}};
}

} // namespace kernelmill::services
