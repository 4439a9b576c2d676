#include "gpu/referee/result_words.hpp"

#include "gpu/referee/timed_pairs.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace {

void write_quantities(const std::vector<counter>& from, capnp::List<wire::Quantity>::Builder into) {
  for (unsigned i = 0; i < from.size(); ++i) {
    into[i].setName(from[i].name);
    into[i].setValue(from[i].value);
    into[i].setUnit(from[i].unit);
  }
}

void write_timing(const timing_record& x, const std::string& shape, wire::Timing::Builder out) {
  out.setMeasured(x.measured);
  out.setCandidateMs(x.candidate_seconds * 1e3);
  out.setReferenceMs(x.reference_seconds * 1e3);
  out.getSpeedup().setEstimate(x.speedup.estimate);
  out.getSpeedup().setLow(x.speedup.low);
  out.getSpeedup().setHigh(x.speedup.high);
  out.setSamples(x.samples);
  out.setClock(x.clock);
  out.setOverheadMs(x.overhead_seconds * 1e3);
  out.setRooflineMs(x.roofline_seconds * 1e3);
  out.setShape(shape);
  out.setNote(x.note);
  out.setBaseline(x.baseline_name);
  out.setBaselineNote(x.baseline_note);
  out.setEagerMs(x.eager_seconds * 1e3);
  out.setNotTimed(static_cast<wire::NotTimed>(x.why_not));
  out.setCandidateCallMs(x.by_call.candidate * 1e3);
  out.setReferenceCallMs(x.by_call.reference * 1e3);
  out.setCandidateDeviceMs(x.by_device.candidate * 1e3);
  out.setReferenceDeviceMs(x.by_device.reference * 1e3);
  auto kinds = out.initKinds(static_cast<unsigned>(x.kinds.size()));
  for (unsigned i = 0; i < kinds.size(); ++i) {
    kinds[i].setName(x.kinds[i].name);
    kinds[i].setCandidateMs(x.kinds[i].candidate_seconds * 1e3);
    kinds[i].setReferenceMs(x.kinds[i].reference_seconds * 1e3);
    kinds[i].setCalls(x.kinds[i].calls);
    kinds[i].setSpeedupLow(x.kinds[i].speedup_low);
    kinds[i].setSpeedupHigh(x.kinds[i].speedup_high);
  }
  auto kept = evenly_thinned(x.pairs.size(), most_timed_pairs);
  auto pairs = out.initPairs(static_cast<unsigned>(kept.size()));
  for (unsigned i = 0; i < pairs.size(); ++i) {
    pairs[i].setCandidateMs(static_cast<float>(x.pairs[kept[i]].candidate * 1e3));
    pairs[i].setReferenceMs(static_cast<float>(x.pairs[kept[i]].reference * 1e3));
  }
}

} // namespace

void write_record(const evaluation_record& x, const std::string& shape,
                  wire::EvaluateResult::Builder out) {
  out.setCorrect(x.correct);
  out.setDeterministic(x.deterministic);
  auto findings = out.initFindings(static_cast<unsigned>(x.findings.size()));
  for (unsigned i = 0; i < x.findings.size(); ++i) {
    findings[i].setRule(x.findings[i].rule);
    findings[i].setSeverity(static_cast<wire::Severity>(x.findings[i].level));
    findings[i].setEvidence(x.findings[i].evidence);
  }
  write_quantities(x.counters, out.initCounters(static_cast<unsigned>(x.counters.size())));
  write_quantities(x.conditions, out.initConditions(static_cast<unsigned>(x.conditions.size())));
  auto spans = out.initSpans(static_cast<unsigned>(x.spans.size()));
  for (unsigned i = 0; i < x.spans.size(); ++i) {
    spans[i].setName(x.spans[i].name);
    spans[i].setValue(x.spans[i].seconds);
    spans[i].setUnit("s");
  }
  auto missing = out.initMissing(static_cast<unsigned>(x.missing.size()));
  for (unsigned i = 0; i < x.missing.size(); ++i) missing.set(i, x.missing[i]);
  out.setOutput(x.output);
  out.setSealed(x.sealed);
  out.setCaseCount(x.case_count);
  out.setSeed(capnp::Data::Reader(x.seed.data(), x.seed.size()));
  set_fault(out.initFault(), x.fault);
  write_timing(x.timing, shape, out.initTiming());
}

} // namespace kernelmill
