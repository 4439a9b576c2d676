#pragma once

// Apart from the index, so that what reads corpora needs no search.

#include <string>

namespace kernelmill {

/// A kernel that prompts may show: the candidate of an accepted turn, or a row of a corpus.
struct kernel_example {
  std::string id;              ///< the turn that verified it, or "kernelbook/17"
  std::string task;            ///< what it solves; of a row of a corpus its name there, or empty
  std::string operator_family; ///< empty: not known
  std::string backend = "cpu";
  std::string source;           ///< its code
  std::string language = "cpp"; ///< of `source`, as a fence names it: cpp, cuda, hip, python
  std::string reference;        ///< the computation that it replaces, in PyTorch; may be empty
  double speedup = 0;           ///< lower bound; 0: nothing measured it
  std::string device;           ///< that measured it: "NVIDIA H200"; may be empty
  std::string date;             ///< of the measurement, "2026-11-30"; may be empty
  std::string origin;           ///< where it is from: "KernelBook", "flag-gems 5.0.2"; empty: a run
  std::string split;            ///< of its task: "dev" is held out, and never an example
  std::string rights_source;    ///< its licence counts; empty: by the task's id
  bool hidden = false;          ///< known to the leak guard alone: its licence forbids to show it

  bool is_shown() const { return !hidden && split != "dev"; }
};

} // namespace kernelmill
