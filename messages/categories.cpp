#include "messages/categories.hpp"

#include <algorithm>

#include "messages/categories_parts.hpp"

namespace kernelmill {

namespace {

constexpr error_category of_verdicts[] = {
    {"success", "all gates that ran pass", "make it faster still",
     "The kernel is right and faster than the baseline. Make it faster still, and keep it right."},
    {"slower", "accepted, but the performance gate fails",
     "look at the profile and at memory access",
     "The kernel is right; now make it faster than the baseline. Read memory in order, let the "
     "compiler use vector registers, and touch each element as few times as possible."},
    {"not_timed",
     "accepted, but it could not be timed, or its interval says nothing; see "
     "[governance](../explanation/governance.md)",
     "where many turns are: give the machine fewer other programs",
     "The kernel is right, but its calls were too few or too uneven to be timed, so no speed is "
     "rewarded. Make it fast, let every call take the same time, and use no more threads than "
     "there are cores."},
};

constexpr error_category of_policies[] = {
    {"format_error",
     "no single kernel (or no label of a `diagnose` task) could be taken from the completion",
     "the feedback names each problem; follow the form of the system message",
     "Think inside <think> and </think>, then write one complete program between <KERNEL> and "
     "</KERNEL>, in capitals, and nothing else."},
    {"context_overflow", "the conversation no longer fits into the model's context",
     "use fewer turns, shorter prompts or a model with a longer context"},
    {"policy_tool_calls", "the answer has `tool_calls` and no `content`",
     "start the server without a parser of tool calls",
     "There are no tools here: write the kernel as text. Write one complete program between "
     "<KERNEL> and </KERNEL>, in capitals, and nothing else."},
    {"bad_arguments", "the arguments of a tool call do not fit the tool",
     "the call is refused with the reason; [tools](tools.md) has each tool's arguments"},
    {"bad_patch",
     "a change to a program is neither a unified diff nor blocks of SEARCH and REPLACE",
     "nothing is changed, and the policy is told where it is wrong"},
    {"patch_failed",
     "a change does not fit the program: what it says was there is not, or not once",
     "nothing is changed, and the policy is told which hunk or block"},
    {"bad_tool_call", "the policy server failed to read a call of a tool in the answer",
     "the turn counts as the policy's fault",
     "The server could not read your call of a tool: its arguments are one JSON object, as the "
     "tool's schema says."},
    {"too_many_calls", "the answer has more than 1024 calls of tools",
     "the turn counts as the policy's fault",
     "At most 1024 calls are taken in one answer: make the few that matter next, and wait for "
     "their "
     "results."},
    {"policy_response_too_large", "the answer is above `policy.max_response_bytes`",
     "lower `policy.sampling.max_tokens`, or raise the limit",
     "Think less, and write one short complete program between <KERNEL> and </KERNEL>."},
    {"answer_overdue",
     "the policy server worked on the answer until `policy.timeout_ms` was over, and was well",
     "lower `policy.sampling.max_tokens`, or raise `policy.timeout_ms`",
     "Decide sooner: write one short complete program between <KERNEL> and </KERNEL>."},
    {"answer_not_text",
     "the answer holds bytes that are no Unicode text: no UTF-8, or half of a surrogate pair",
     "U+FFFD stands for them in the record",
     "Write plain text: one complete program between <KERNEL> and </KERNEL>, in capitals."},
    {"answer_unreadable", "the policy server's JSON around the answer is broken within its words",
     "the message quotes it; look at what the server makes of such words",
     "Write plain ASCII: one complete program between <KERNEL> and </KERNEL>, in capitals."},
    {"bad_request",
     "the scripted policy server was asked something that is no request for a completion",
     "correct the client that asks"},
};

constexpr error_category of_candidates[] = {
    {"compile_error", "the compiler refused the kernel", "repair the first error that it names",
     "Repair the first error that the compiler names; later ones often follow from it. Check that "
     "every header is included and that the declaration is the one that the task asks for."},
    {"illegal_access", "a kernel accessed unmapped memory, and the GPU's context was lost",
     "check every index against the shape; pass device pointers only",
     "A kernel read or wrote where no memory is. Check every index against the shape, and pass "
     "device pointers only."},
    {"device_error", "the GPU's context was lost in another way: a trap, an assert, a reset",
     "check launch sizes, asserts and traps",
     "The GPU stopped the kernel. Check launch sizes, asserts and traps."},
    {"bad_launch",
     "a launch or scratch line of device code cannot be read, names something undefined, or asks "
     "for a geometry that the GPU refuses",
     "the message names the line; [the contract](device-contract.md)",
     "Repair the launch or scratch line that is named: write it as the task's statement shows, "
     "with names and sizes that it gives."},
    {"unasked_work", "outputs were written that no call had been given",
     "compute what the call asks for, nothing ahead",
     "Compute what the call asks for, and nothing ahead."},
    {"compile_timeout", "the compiler took longer than `compile.deadline_ms`",
     "fewer templates, constant expressions and unrolled loops",
     "The compiler took too long. Use fewer templates and constant expressions, and smaller "
     "unrolled loops."},
    {"compile_memory", "the compiler wanted more memory than it may have", "the same",
     "The compiler ran out of memory. Use fewer templates, smaller tables and shorter unrolled "
     "loops."},
    {"load_failed", "the library could not be loaded", "define every function that is called",
     "The library was built but could not be loaded. Define every function that you call, and do "
     "nothing before the function is called."},
    {"missing_symbol", "the library does not export the task's function",
     "`extern \"C\"`, the exact name, not static",
     "Define the function exactly as the task declares it, with extern \"C\" and not static."},
    {"crashed", "a signal ended the kernel", "check indices against odd shapes; outputs only",
     "Check every index against the shape: loops over blocks must stop at the end of rows whose "
     "length is no multiple of the block, and size 1 must work. Write outputs only."},
    {"no_time", "a program gave its clock nothing to time",
     "run the benchmark's ranges and kernels as the task's own solution does",
     "Nothing was timed: keep the ranges and the launches that the benchmark times."},
    {"exited", "the kernel ended its process", "return from the function",
     "Return from the function; never end the process."},
    {"timed_out", "a call or the evaluation took too long",
     "look for endless loops, deadlocks, too much work",
     "Check that every loop ends for every shape and that no lock waits for ever, or write "
     "something of a lower order of cost."},
    {"out_of_memory", "the kernel wanted more memory than it may have, of the host or of the GPU",
     "allocate less", "Allocate less, or nothing: work in place, in blocks, or on the stack."},
    {"output_flood", "the kernel printed more than 1 MiB", "print nothing",
     "Print nothing: what a kernel prints is never read as a result."},
    {"wrong_result", "a case is wrong", "compute the failing case by hand; check tails and ties",
     "Compute the failing case by hand. Check tails of blocks, the first and last element, ties, "
     "initial values, and that every element of each output is written on every call in at least "
     "32-bit precision."},
    {"not_deterministic", "the same inputs gave other results, one of them outside the bound",
     "look for races and for memory that is read before it is written",
     "Look for a race between threads, memory that is read before it is written, and state that is "
     "kept from one call to the next."},
    {"memory_safety",
     "the outputs are right, and a sanitizer found a race, a read of what was never written, an "
     "access out of bounds or undefined behaviour (`evaluation.sanitize`, `reward.memory_safety`)",
     "`kernelmill sanitize` lists all of it, with source lines",
     "The results are right, by chance of this machine. Mend the access that is named: a barrier "
     "between a write and another thread's read, a value before the first read, a bound."},
    {"out_of_bounds_write",
     "bytes beside an output changed; the verdict's category becomes `integrity`",
     "check every index",
     "Bytes beside an output were written. Check every index against the shape."},
    {"import_error", "contract `torch`: the module raised when it was imported",
     "repair what the traceback names",
     "The module raised an exception when it was imported. Repair what the traceback names; import "
     "only what the machine has."},
    {"missing_model",
     "contract `torch`: the module defines no class `ModelNew`, nor the function that the task "
     "takes",
     "define it at the module's level",
     "Define a class ModelNew at the module's level, an nn.Module, or the function where the task "
     "names one."},
    {"init_error", "contract `torch`: `ModelNew(...)` raised",
     "take what `get_init_inputs()` gives",
     "ModelNew could not be constructed. Take the arguments that get_init_inputs() gives, in their "
     "order."},
    {"runtime_error", "contract `torch`: `forward` raised", "check shapes, types and launch sizes",
     "forward raised an exception. Take the arguments that get_inputs() gives, and check shapes, "
     "types and launch sizes."},
    {"wrong_shape", "contract `torch`: an output has another shape than the problem's",
     "return what `Model` returns",
     "Return tensors of the shapes that Model returns, in their order."},
    {"wrong_dtype", "contract `torch`: an output has another type than the problem's", "the same",
     "Return tensors of the types that Model returns."},
    {"wrong_type", "contract `torch`: an output is no plain tensor, or no tuple of them",
     "the same", "Return plain tensors, or a tuple of them, as Model does."},
    {"extension_not_built",
     "contract `torch`: `load_inline` or `load` was called with arguments that were not seen when "
     "the module was imported",
     "call it at the module's level or in `__init__`, always alike",
     "Call load_inline or load at the module's level or in __init__, always with the same "
     "arguments: what is first asked for in forward was not built."},
    {"wrong_language",
     "contract `torch`: the answer has no kernel in the language of `evaluation.language`",
     "write the kernels in that language",
     "Write the kernels in the language that the task asks for; operators of the framework alone "
     "are not enough."},
    {"bad_answer",
     "contract `program`: the answer cannot be taken for files: it writes one that it may not, "
     "one twice, or is a diff that does not fit",
     "the message names the file; [the contract](program-contract.md)",
     "Write only the files that the task names, each once: the whole text of the answer file, or "
     "sections that each begin with a line `// file: PATH`."},
    {"missing_reference",
     "contract `program`: the answer does not use a name that the task asks for",
     "use it in code, not in a comment",
     "Use the functions that the task names, in code that runs."},
    {"replaced_function",
     "contract `program`: the program defines a function of a library itself, which the tests "
     "would "
     "call",
     "give the function another name, or make it static",
     "Give your functions names that no library has, or make them static."},
    {"no_visible_case",
     "contract `program`: only visible cases were asked for, and the tests of a program are hidden",
     "submit the candidate", "Submit it: the tests of this task are hidden."},
    {"disturbed_referee", "the referee failed beside the kernel and works without it, twice",
     "use no more memory, threads and time than the function needs",
     "Use no more memory, threads and time than the function needs, and leave nothing behind."},
    {"unchanged", "the verdict's category where an accepted kernel is a copy of what was shown",
     "write a kernel of your own",
     "This is what the prompt showed, but for comments and spaces, so its speed is not rewarded. "
     "Write a kernel of your own."},
    {"integrity", "a critical finding rejects the kernel; the finding names its rule (below)",
     "do all of the work in each call, and finish before returning",
     "Do all of the work in each call, from that call's inputs, and finish before returning. Write "
     "to the outputs only, and keep nothing between calls that depends on the contents."},
    {"diagnosis_wrong", "the kernel is right, the label of a `diagnose` task is not",
     "choose another label",
     "Choose another label: ask which one cause would explain most of the time that is lost."},
    {"evidence_wrong",
     "kernel and label of a `diagnose` task are right; what was said of a counter is not, or a "
     "hidden counter did not change as the diagnosis demands",
     "compare the counters of the starter with those of a repaired kernel",
     "Ask for each counter of the task's list whether it falls or rises when the cause is removed, "
     "say so between <EVIDENCE> and </EVIDENCE>, and remove the cause itself."},
    {"not_reformulated",
     "the results of a `reformulate` task are right, and the kernel computes as its starter does",
     "the message says what was compared",
     "Change how it is computed: other passes over memory, another order, fewer launches or other "
     "instructions. New names, another order of statements and unused code change nothing."},
};

constexpr finding_rule rules[] = {
    {"input_overwrite", "critical", "the kernel tried to write to an input",
     "an input was changed"},
    {"out_of_bounds_write", "critical", "bytes beside an output changed",
     "bytes beside an output were written"},
    {"unasked_work", "critical", "outputs were written that no call had been given",
     "outputs that no call was given were written"},
    {"output_is_input", "critical",
     "contract `torch`: a timed call returned memory of its inputs where the model writes a new "
     "tensor",
     "an output is memory of the inputs, where the model writes a new tensor"},
    {"late_write", "critical", "an output changed after the call had returned",
     "outputs changed after the call was said to be done"},
    {"wrong_when_timed", "critical", "right in the cases, wrong in a timed call",
     "right in all cases, but wrong when it was timed"},
    {"impossible_speed", "critical",
     "faster than memory or arithmetic units of this machine allow; contract `torch`: than its "
     "memory gives what must be read and written",
     "no honest kernel is as fast as this on this machine"},
    {"unchanged", "warning",
     "the code is a copy of what was shown; see [governance](../explanation/governance.md)",
     "the code is what was shown, but for comments and spaces"},
    {"own_model", "info",
     "contract `torch`: the class does what the problem's does, word for word, but for names and "
     "settings of libraries; it counts as `unchanged`",
     "the code is the problem's own model, but for names and settings of libraries"},
    {"background_work", "critical", "work went on between the calls, or after the last one",
     "work went on between the calls, when nothing was asked for"},
    {"ran_while_stopped", "critical",
     "contract `native` on a CPU: a candidate worked before its calls, while it was stopped",
     "it worked while it was told to stand still"},
    {"depends_on_contents", "warning",
     "slower on one input pattern than on the others: that pattern is rewarded",
     "the time depends on the contents of inputs, and the slowest input pattern is rewarded"},
    {"calls_overlap", "warning",
     "on a GPU: calls that follow one another are faster than calls alone, or than calls that are "
     "kept apart: the lesser speedup is rewarded",
     "calls are faster together than alone; what they show alone is rewarded"},
    {"slows_baseline", "warning",
     "contract `native` on a CPU: the baseline is slower after a call of the candidate than before "
     "it; the difference is not rewarded",
     "the baseline is slower after it than before it: that is not rewarded"},
    {"not_deterministic", "warning",
     "the same inputs gave results further apart than the bound allows; the determinism gate fails",
     "the same inputs gave different results"},
    {"outputs_out_of_reach", "warning",
     "contract `torch`: the outputs could not be read in the stopped process, for their memory is "
     "freed in between or cannot be opened; what it took to fetch them counts as the candidate's "
     "time",
     "outputs lie where they have to be fetched, which counts as time"},
    {"outputs_in_one_place", "warning",
     "contract `torch`: right call by call and not in a row, as outputs in one place again and "
     "again are: each call's outputs are copied in the candidate's process, in its time",
     "outputs lie in one place again and again, so each call's are copied, which takes time; "
     "return "
     "new tensors"},
    {"bits_vary", "warning",
     "the same inputs gave other bits, within the bound, as sums in no fixed order do",
     "the same inputs gave other bits, within the bound"},
    {"decoy_kernel", "critical",
     "the kernels of the wanted language have too little of the GPU's time, or none",
     "kernels of the wanted language do too little of the work"},
    {"framework_fallback", "critical",
     "the kernels of the wanted language have too little of the GPU's time, or none",
     "no kernel of the wanted language does any of the work"},
    {"degenerate_problem", "warning",
     "mode `kernelbench`: an answer that ignores the inputs would have passed, at least 29 times "
     "of "
     "32: the problem decides nothing",
     "an answer that knows nothing of the inputs would have passed"},
    {"memory_race", "warning",
     "a sanitizer: threads access an element without a barrier between them; for the gate "
     "`memory_safety`, as the next six",
     "threads access the same element without a barrier between them"},
    {"memory_uninitialized", "warning",
     "compute-sanitizer: a read of memory that was never written",
     "memory is read that was never written"},
    {"memory_out_of_bounds", "warning", "a sanitizer: an access outside of every buffer",
     "an access lies outside of every buffer"},
    {"memory_misaligned", "warning",
     "a sanitizer: an access at an address that is no multiple of its size",
     "an access lies at an address that is no multiple of its size"},
    {"memory_barrier", "warning",
     "compute-sanitizer: a barrier that not all threads of a block reach",
     "not all threads of a block reach a barrier"},
    {"memory_use_after_free", "warning",
     "AddressSanitizer, on a CPU: an access to memory or to a variable whose life is over, or a "
     "second free",
     "memory is used after it was freed"},
    {"memory_undefined", "warning",
     "UndefinedBehaviorSanitizer, on a CPU: an operation without a defined result, as a signed "
     "overflow or a shift too far",
     "an operation has no defined result"},
    {"own_word", "info",
     "contract `program`: tests and candidate share a process, so that its own word decided: its "
     "main returned, as the baseline's does, with exit code 0",
     "the tests ran in the candidate's own process"},
    {"no_profile", "warning", "the kernels of a `torch` candidate could not be listed",
     "which kernels run could not be listed"},
};

template <class T>
const T* find(std::span<const T> all, std::string_view name) noexcept {
  auto found = std::find_if(all.begin(), all.end(), [&](const T& x) { return x.name == name; });
  return found == all.end() ? nullptr : &*found;
}

} // namespace

std::span<const error_category> categories_of(fault_class x) noexcept {
  switch (x) {
    case fault_class::none: return of_verdicts;
    case fault_class::policy: return of_policies;
    case fault_class::candidate: return of_candidates;
    case fault_class::configuration: return configuration_categories();
    case fault_class::infrastructure: return infrastructure_categories();
  }
  return {};
}

const error_category* find_category(fault_class cls, std::string_view name) noexcept {
  return find(categories_of(cls), name);
}

std::string_view advice_of(std::string_view category) noexcept {
  for (auto cls : {fault_class::none, fault_class::policy, fault_class::candidate})
    if (const auto* x = find_category(cls, category)) return x->advice;
  return {};
}

std::span<const finding_rule> finding_rules() noexcept {
  return rules;
}

const finding_rule* find_rule(std::string_view name) noexcept {
  return find(finding_rules(), name);
}

} // namespace kernelmill
