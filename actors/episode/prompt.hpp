#pragma once

#include <string>

#include "gpu/task/task.hpp"
#include "messages/retrieve.capnp.h"
#include "messages/verdict.capnp.h"

namespace kernelmill {

/// The system message: the role, the answer format (<think>, <KERNEL>), what is judged.
std::string system_prompt(const task& x);

/// What is added to it where answers may be changes to the last kernel.
std::string patch_prompt();

/// The same without an answer format: the role and what is judged.
std::string judging_prompt(const task& x);

/// The first user message: "[task: ID]" on its first line, the task's prompt, the declaration,
/// the starter source where there is one, the diagnoses to choose from, the visible cases, and
/// the retrieved examples.
std::string task_prompt(const task& x, wire::RetrieveResult::Reader examples);

/// What the next turn is told of a profile: nothing; the card; or the card and its numbers.
enum class profile_words : unsigned char { none, card, numbers };

/// What the next user message says of a turn: status, category, cleaned error text, first failing
/// case with its numbers, compiler diagnostics, timing, the profiler's card, findings with their
/// evidence, and what to do next. Hidden cases are named but their numbers stay hidden. Control
/// bytes are removed; at most `limit` bytes.
std::string feedback_text(wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict,
                          size_t limit = 6000, profile_words profile = profile_words::card);

/// What a tool call says of a candidate: the same without the turn and without what to do next.
std::string verdict_text(wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict, size_t limit,
                         profile_words profile);

} // namespace kernelmill
