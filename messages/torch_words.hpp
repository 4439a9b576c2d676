#pragma once

// Words for answers of the contract `torch`: languages, and what they are timed beside.

#include <string>
#include <vector>

namespace kernelmill {

/// What answers may be asked for in: any, cuda, triton, torch, and languages for kernels in Python
/// beside Triton, whose packages the interpreter may lack (kernelmill_torch/languages.py).
inline const std::vector<std::string>& answer_languages() {
  static const std::vector<std::string> languages{
      "any", "cuda", "triton", "torch", "gluon", "cute_dsl", "cutile", "tilelang", "helion"};
  return languages;
}

/// Whether a value of evaluation.baseline is a word, and not a file.
inline bool is_baseline_word(const std::string& x) {
  return x == "eager" || x == "compile" || x == "compile_max_autotune" || x == "best";
}

} // namespace kernelmill
