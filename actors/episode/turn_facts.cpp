#include "actors/episode/turn_facts.hpp"

#include "actors/episode/verb_checks.hpp"
#include "gpu/profiler/tier0.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

Message<wire::BuildRequest> build_request(const candidate_view& x,
                                          std::chrono::milliseconds deadline) {
  return build<wire::BuildRequest>([&](wire::BuildRequest::Builder out) {
    out.setTask(x.what.id);
    out.setContract(to_string(x.what.contract));
    out.setBackend(x.what.terms.backend);
    out.setSource(x.parsed.kernel);
    out.setSha256(x.sha256);
    out.setDeadlineMs(static_cast<uint32_t>(deadline.count()));
    if (x.what.contract == contract_kind::torch || x.what.contract == contract_kind::program) {
      out.setTaskDir(x.what.directory);
      out.setTaskDigest(x.what.digest);
    }
  });
}

namespace {

// Compilers of torch's are for modules alone; other tasks of the same run keep their own baseline.
void set_baseline(wire::EvaluateRequest::Builder out, const task& what) {
  const auto& x = what.terms.baseline;
  bool compiled = x.kind.starts_with("compile");
  bool usual = x.kind == "eager" && x.note.empty();
  if (usual || (compiled && what.contract != contract_kind::torch)) return;
  out.setBaseline(x.kind);
  out.setBaselineNote(x.note);
  if (!x.product) return;
  out.setBaselineSha256(x.sha256);
  out.setBaselineProduct(
      {reinterpret_cast<const unsigned char*>(x.product->data()), x.product->size()});
}

} // namespace

Message<wire::EvaluateRequest> evaluation_request(const candidate_view& x,
                                                  wire::BuildResult::Reader built,
                                                  const evaluation_terms& terms) {
  return build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder out) {
    out.setTaskDir(x.what.directory);
    out.setTaskDigest(x.what.digest);
    out.setTaskId(x.what.id);
    out.setCandidateSha256(x.sha256);
    out.setLibraryPath(built.getLibraryPath());
    out.setLibrarySha256(built.getLibrarySha256());
    out.setContract(to_string(x.what.contract));
    out.setTiming(terms.timing);
    if (!terms.timed || terms.visible_only) out.getTiming().setEnabled(false);
    out.setVisibleOnly(terms.visible_only);
    out.setReports(terms.reports);
    if (x.what.contract == contract_kind::torch) {
      out.setMode(x.what.terms.mode);
      out.setLanguage(x.what.terms.language);
      out.setFloat32(x.what.terms.float32);
      out.setShapes(x.what.terms.shapes);
    }
    set_baseline(out, x.what);
    bool sanitized = !terms.sanitize.empty();
    auto more = sanitized ? terms.sanitize_limit : std::chrono::milliseconds{0};
    if (sanitized) out.setSanitize(std::string{terms.sanitize});
    // Sanitizers of the CPU are part of a build, which is made where the candidate is judged.
    bool built_again = sanitized && x.what.terms.backend == "cpu";
    bool is_read = compares_code(x.what) && !terms.visible_only;
    if ((built_again && x.what.contract == contract_kind::native) || is_read)
      out.setSource(x.parsed.kernel);
    out.setSanitizeMs(static_cast<uint32_t>(more.count()));
    out.setDeadlineMs(static_cast<uint32_t>((terms.deadline + more).count()));
    if (!terms.seed.empty()) out.setSeed(kj::arrayPtr(terms.seed.data(), terms.seed.size()));
  });
}

namespace {

// The profile numbers that a turn on a GPU has without a profiler.
void set_free_profile(wire::TurnFacts::Builder out, const candidate_view& x,
                      wire::BuildResult::Reader built) {
  auto found = tier0_profile(x.what, x.parsed.kernel, built, out.getEvaluation().asReader());
  if (found) out.setProfile(*found->open());
}

void set_verb_facts(wire::TurnFacts::Builder out, const candidate_view& x) {
  auto found = verb_facts_of(x.what, x.parsed, out.getEvaluation().asReader());
  if (!found.same_strategy.empty()) out.setSameStrategy(found.same_strategy);
  if (found.checks.empty()) return;
  auto checks = out.initEvidence(static_cast<unsigned>(found.checks.size()));
  for (unsigned i = 0; i < checks.size(); ++i) {
    checks[i].setName(found.checks[i].name);
    checks[i].setHidden(found.checks[i].hidden);
    checks[i].setRight(found.checks[i].right);
    checks[i].setNote(found.checks[i].note);
  }
}

// What the text shows, or what judged the module has seen in its structure.
std::string copied(const candidate_view& x, const shown_code& shown,
                   wire::EvaluateResult::Reader evaluation) {
  auto found = shown.copied_in(x.parsed.kernel);
  for (auto finding : evaluation.getFindings())
    if (found.empty() && finding.getRule() == "own_model" && x.what.verb != "synthesize")
      found = "the problem's own model";
  return found;
}

} // namespace

void set_turn_facts(wire::TurnFacts::Builder out, const candidate_view& x,
                    const turn_course& course, const shown_code& shown) {
  out.setTask(x.what.id);
  out.setVerb(x.what.verb);
  out.setOperatorFamily(x.what.operator_family);
  out.setBackend(x.what.terms.backend);
  out.setContract(to_string(x.what.contract));
  out.setCandidateSha256(x.sha256);
  // Thought and kernel are not repeated: they are parts of the completion.
  auto parsed = out.initParsed();
  parsed.setOk(x.parsed.ok);
  parsed.setLanguage(x.parsed.language);
  parsed.setDiagnosis(x.parsed.diagnosis);
  auto problems = parsed.initProblems(static_cast<unsigned>(x.parsed.problems.size()));
  for (unsigned i = 0; i < problems.size(); ++i) problems.set(i, x.parsed.problems[i]);
  if (!course.build.empty()) out.setBuild(*course.build.open());
  if (!course.evaluation.empty()) out.setEvaluation(*course.evaluation.open());
  if (!course.profile.empty()) out.setProfile(*course.profile.open());
  if (!course.build.empty() && !out.getProfile().getAvailable())
    set_free_profile(out, x, *course.build.open());
  if (course.fault.cls != fault_class::none) set_fault(out.initFault(), course.fault);
  out.setDiagnosisRight(x.what.diagnosis.empty() || x.parsed.diagnosis == x.what.diagnosis);
  out.setTurn(course.turn);
  out.setMaxTurns(course.max_turns);
  if (out.getEvaluation().getCorrect()) set_verb_facts(out, x);
  if (!course.evaluation.empty()) out.setUnchanged(copied(x, shown, out.getEvaluation()));
}

Message<wire::TurnFacts> with_answer(wire::TurnFacts::Reader facts, const std::string& thought,
                                     const std::string& kernel) {
  capnp::MallocMessageBuilder builder;
  builder.setRoot(facts);
  auto parsed = builder.getRoot<wire::TurnFacts>().getParsed();
  parsed.setThought(thought);
  parsed.setKernel(kernel);
  return Message<wire::TurnFacts>{builder};
}

} // namespace kernelmill
