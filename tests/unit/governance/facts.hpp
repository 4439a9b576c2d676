#pragma once

// Facts of turns as the other parts report them, for tests to spoil one at a time.

#include "messages/message.hpp"
#include "messages/verdict.capnp.h"

namespace kernelmill::fixtures {

inline void fill_case(wire::CaseResult::Builder out, const char* name, bool hidden, bool pass) {
  out.setName(name);
  out.setShape("rows=4 cols=8");
  out.setHidden(hidden);
  out.setPass(pass);
  out.setMaxError(pass ? 1e-8 : 2.5);
  out.setBound(1e-6);
  out.setBadCount(pass ? 0 : 3);
  if (!pass) out.setFirstBad("y[3]: got 1.5, want 4 (bound 1e-06)");
}

/// A correct and deterministic kernel, 3x as fast as its baseline (2.9x to 3.1x).
inline void fill_good(wire::TurnFacts::Builder out) {
  out.setTask("native/row_sum");
  out.setVerb("optimize");
  out.setMaxTurns(4);
  auto parsed = out.initParsed();
  parsed.setOk(true);
  parsed.setKernel("int x;");
  auto built = out.initBuild();
  built.setCompiled(true);
  built.setToolchain("g++ 12.2.0");
  auto evaluation = out.initEvaluation();
  evaluation.setCorrect(true);
  evaluation.setDeterministic(true);
  auto cases = evaluation.initCases(2);
  fill_case(cases[0], "small", false, true);
  fill_case(cases[1], "odd", true, true);
  auto timing = evaluation.initTiming();
  timing.setMeasured(true);
  timing.setCandidateMs(0.1);
  timing.setReferenceMs(0.3);
  timing.setSamples(20);
  timing.setClock("outside");
  timing.getSpeedup().setEstimate(3.0);
  timing.getSpeedup().setLow(2.9);
  timing.getSpeedup().setHigh(3.1);
}

inline void fill_format_error(wire::TurnFacts::Builder out) {
  fill_good(out);
  auto parsed = out.initParsed();
  parsed.initProblems(1).set(0, "There is no kernel.");
  out.initBuild();
  out.initEvaluation();
}

inline void fill_compile_error(wire::TurnFacts::Builder out) {
  fill_good(out);
  out.initEvaluation();
  auto built = out.initBuild();
  auto diagnostic = built.initDiagnostics(1)[0];
  diagnostic.setFile("kernel.cpp");
  diagnostic.setLine(3);
  diagnostic.setColumn(5);
  diagnostic.setSeverity("error");
  diagnostic.setMessage("'foo' was not declared in this scope");
  auto fault = built.initFault();
  fault.setClass(wire::FaultClass::CANDIDATE);
  fault.setCategory("compile_error");
  fault.setMessage("g++ reported 1 error");
}

inline void fill_wrong_result(wire::TurnFacts::Builder out, bool hidden = false) {
  fill_good(out);
  auto evaluation = out.initEvaluation();
  auto cases = evaluation.initCases(2);
  fill_case(cases[0], "small", false, hidden);
  fill_case(cases[1], "odd", true, false);
  auto fault = evaluation.initFault();
  fault.setClass(wire::FaultClass::CANDIDATE);
  fault.setCategory("wrong_result");
  fault.setMessage("case odd (rows=4 cols=8) is wrong");
}

inline void fill_crash(wire::TurnFacts::Builder out) {
  fill_good(out);
  auto fault = out.initEvaluation().initFault();
  fault.setClass(wire::FaultClass::CANDIDATE);
  fault.setCategory("crashed");
  fault.setMessage("the kernel ended by signal 11 (segmentation fault)");
}

inline void add_finding(wire::TurnFacts::Builder out, const char* rule, wire::Severity severity) {
  auto finding = out.getEvaluation().initFindings(1)[0];
  finding.setRule(rule);
  finding.setSeverity(severity);
  finding.setEvidence("512 bytes of y changed 3 ms after the call");
}

template <class F>
Message<wire::TurnFacts> facts(F&& fill) {
  return build<wire::TurnFacts>([&](wire::TurnFacts::Builder out) { fill(out); });
}

} // namespace kernelmill::fixtures
