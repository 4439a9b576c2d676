#pragma once

// INTERNAL to prompts: what those of all contracts are made of.

#include <string>
#include <string_view>

#include "gpu/task/task.hpp"
#include "messages/retrieve.capnp.h"

namespace kernelmill {

inline constexpr std::string_view format_head =
    "Answer in this form and no other:\n"
    "<think>\n"
    "a few short lines: what costs time, what you will do\n"
    "</think>\n";

inline constexpr std::string_view after_each_answer =
    "After each answer you are told what happened, and you may improve it.\n";

/// Parts of the system message of a task of the contract `torch`.
std::string torch_role(const task& x);
std::string torch_format(const task& x);
std::string torch_judging(const task& x);

/// The same of a task of the contract `program`.
std::string program_role(const task& x);
std::string program_format(const task& x);
std::string program_judging(const task& x);
std::string program_task_prompt(const task& x, wire::RetrieveResult::Reader examples);

/// What the verb of a task asks for; empty for `optimize` and `diagnose`.
std::string verb_words(const task& x);

/// The labels and the counters of a task that asks for a diagnosis.
std::string diagnosis_words(const task& x);

/// The part of an answer's form that such a task adds.
std::string diagnosis_format(const task& x);

/// Appends `text` in a fence that no line of it can close, cleaned, at most `limit` bytes.
void append_fenced(std::string& out, std::string_view text, std::string_view language,
                   size_t limit);

/// Of each part of an example in a first prompt, as in kernel_rl's: several of them must not push
/// the task itself out of a small context.
inline constexpr size_t example_characters = 10'000;

/// The line behind a part of an example whose end is not shown.
inline constexpr std::string_view cut_note = "(The rest is left out.)";

/// Appends an example that a retriever found under its title: a card as it is; of a kernel where it
/// is from, the code of what it computes, and its own. Each part ends with a line and has at most
/// so many characters: `limit` a card or kernel, `reference_limit` the code of what it computes.
void append_example(std::string& out, wire::Example::Reader example, size_t limit,
                    size_t reference_limit);

/// Appends all that a retriever found: kernels first, then cards.
void append_examples(std::string& out, wire::RetrieveResult::Reader found);

/// The first user message of a task of the contract `torch`.
std::string torch_task_prompt(const task& x, wire::RetrieveResult::Reader examples);

} // namespace kernelmill
