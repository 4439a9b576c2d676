"""One honest kernel in each language that the interpreter has, and one answer that only pretends: it imports the
package, defines a kernel, and has torch do the work. The first must be accepted, the second refused.

  PYTHONPATH=launch/tools python3 -m gpu_check.kernel_languages --python PATH --out DIR

The honest answers are the examples of the prompts. Prints a table last."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE.parents[2] / "build" / "bin" / "kernelmill"
PACKAGES = HERE.parents[2] / "gpu" / "torch"
FORWARD = re.compile(r"( {4}def forward\(self, x, shift\):\n).*", re.DOTALL)
PRETENDED = r"\1        return torch.addcmul(shift, x, x, value=self.scale)" + "\n"
TASK = {
    "schema_version": 1,
    "id": "languages/{}",
    "title": "Scale a square and shift it",
    "verb": "optimize",
    "operator_family": "elementwise",
    "contract": "torch",
    "backends": ["cuda"],
}


def read_options(arguments):
    parser = argparse.ArgumentParser(prog="kernel_languages", description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--python", default=sys.executable, help="interpreter with torch and the packages; default: this one")
    add("--program", default=str(PROGRAM), help="kernelmill; default: that of this checkout")
    add("--out", default=os.environ.get("OUT", "/tmp/kernel_languages"), help="folder; default: $OUT")
    add("languages", nargs="*", help="default: all that are installed")
    return parser.parse_args(arguments)


def answers_of(text):
    """Examples by language, as the sources of the prompt have them, and the problem."""
    found = dict(re.findall(r'constexpr std::string_view (\w+) = R"py\((.*?)\)py";', text, re.DOTALL))
    return {name.removesuffix("_answer"): x for name, x in found.items() if name.endswith("_answer")}, found["problem"]


def installed(python):
    """What of the languages that interpreter has."""
    code = "from kernelmill_torch import languages; print(*(set(languages.LANGUAGES) - set(languages.missing())))"
    done = subprocess.run(
        [python, "-c", code], env={**os.environ, "PYTHONPATH": str(PACKAGES)}, capture_output=True, text=True
    )
    return done.stdout.split()


def evaluate(options, language, folder, answer):
    command = [options.program, "eval", "--task", f"languages/{language}", "--root", str(folder / "tasks")]
    command += ["--python", options.python, "--language", language, "--json", str(answer)]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"outcome": "none", "category": (done.stderr.strip().splitlines() or ["?"])[0]}


def main(arguments=None):
    options = read_options(arguments)
    here = installed(options.python)
    answers, problem = answers_of((HERE.parents[2] / "actors" / "episode" / "torch_answers.cpp").read_text())
    wanted = [x for x in (options.languages or sorted(set(answers) & {"triton", *here}))]
    folder, rows = pathlib.Path(options.out), []
    for language in wanted:
        task = folder / "tasks" / "languages" / language
        task.mkdir(parents=True, exist_ok=True)
        (task / "task.json").write_text(json.dumps({**TASK, "id": f"languages/{language}"}))
        (task / "prompt.md").write_text("Make it fast.\n")
        (task / "problem.py").write_text(problem)
        for name, text in (("honest", answers[language]), ("pretends", FORWARD.sub(PRETENDED, answers[language]))):
            path = folder / f"{language}_{name}.py"
            path.write_text(text)
            document = evaluate(options, language, folder, path)
            outcome, category, timing = (
                document["outcome"],
                document.get("category") or "",
                document.get("timing") or {},
            )
            rules = ",".join(x["rule"] for x in document.get("integrity", {}).get("findings", []))
            speedup = (timing.get("speedup") or {}).get("estimate")
            right = (outcome == "accepted") == (name == "honest")
            rows.append((language, name, outcome, category, rules, speedup, right))
            if not right:
                print(json.dumps(document)[:3000], file=sys.stderr)
            print(f"{language} {name}: {outcome} {category}", flush=True)
    missing = sorted(set(answers) - {"cuda", "cpp", "torch", "triton", *here})
    print(f"installed: {' '.join(here) or 'none'}; not: {' '.join(missing) or 'none'}")
    print(f"{'language':10} {'answer':9} {'outcome':16} {'speedup':>8}  {'as wanted':9}  category, findings")
    for language, name, outcome, category, rules, speedup, right in rows:
        shown, wanted = f"{speedup:.3f}" if speedup else "-", "yes" if right else "NO"
        print(f"{language:10} {name:9} {outcome:16} {shown:>8}  {wanted:9}  {category} {rules}")
    return 0 if all(x[-1] for x in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
