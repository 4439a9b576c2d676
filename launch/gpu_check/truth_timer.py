"""One plain process that times modules: `python3 -m gpu_check.truth_timer JOBS DEVICE`. Nothing of Kernelmill is in it.

JOBS is a file of lines {"problem", "module", "file", "model", "inputs"}. Prints one line for each: device_ms, the median of CUDA
events around single calls, each after a flush of 256 MiB, and call_ms, the host's clock over calls back to back until the
GPU is done, divided by their number."""

import importlib.util
import json
import statistics
import sys
import time

import torch

SINGLE_CALLS = 20   # in each of two passes
ROW_CALLS = 64
FLUSH_BYTES = 256 << 20
SETS_BYTES = 2 << 30


def load(path, number):
    spec = importlib.util.spec_from_file_location(f"module_{number}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Plain:
    def __init__(self, device):
        self.device, self.is_gpu = device, device == "cuda"
        self.flush = torch.empty(FLUSH_BYTES if self.is_gpu else 64 << 20, dtype=torch.uint8, device=device)
        self.sync = torch.cuda.synchronize if self.is_gpu else (lambda: None)

    def inputs(self, problem):
        """Sets of inputs; as many as 2 GiB hold, 16 at most, so that a row finds nothing in the caches."""
        with torch.device(self.device) if hasattr(torch.device, "__enter__") else torch.no_grad():
            first = [x.to(self.device) for x in problem.get_inputs()]
            size = sum(x.numel() * x.element_size() for x in first) * 2
            count = max(1, min(16, SETS_BYTES // size))
            return [first] + [[x.to(self.device) for x in problem.get_inputs()] for _ in range(count - 1)]

    def single(self, call, sets):
        """Milliseconds of single calls, by CUDA events."""
        if not self.is_gpu:
            return []
        found = []
        for i in range(SINGLE_CALLS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.flush.fill_(i)
            start.record()
            call(*sets[i % len(sets)])
            end.record()
            end.synchronize()
            found.append(start.elapsed_time(end))
        return found

    def row(self, call, sets, calls):
        """Milliseconds a call, by the host's clock."""
        kept = [None] * len(sets)
        self.flush.fill_(1)
        self.sync()
        started = time.perf_counter()
        for i in range(calls):
            kept[i % len(sets)] = call(*sets[i % len(sets)])
        self.sync()
        return (time.perf_counter() - started) / calls * 1e3

    def warm(self, call, sets):
        """Until what is built at first is there; returns about how long a call takes."""
        for one in sets[:3]:
            call(*one)
        self.sync()
        return min(self.row(call, sets, 2) for _ in range(3))


def measure(plain, rows, number):
    problem = load(rows[0]["model"], f"problem_{number}")
    sets = plain.inputs(problem)
    models = {}
    for i, x in enumerate(rows):
        torch.manual_seed(1)
        module = load(x["file"], f"{number}_{i}")
        models[x["module"]] = getattr(module, x["class"])().to(plain.device)
    found = {name: ([], []) for name in models}
    for _ in range(2):  # two passes, so that a drift of the clocks meets all alike
        for name, model in models.items():
            about = plain.warm(model, sets)
            found[name][0].extend(plain.single(model, sets))
            calls = ROW_CALLS if about < 2 else 16
            found[name][1].extend(plain.row(model, sets, calls) for _ in range(max(1, min(9, int(400 / (about * calls))))))
    for x in rows:
        single, row = found[x["module"]]
        yield {"problem": x["problem"], "module": x["module"], "device_ms": statistics.median(single) if single else None,
               "call_ms": statistics.median(row), "singles": single, "rows": row}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        jobs = [json.loads(line) for line in file]
    plain = Plain(sys.argv[2])
    with torch.no_grad():
        for number, name in enumerate(dict.fromkeys(x["problem"] for x in jobs)):
            try:
                for line in measure(plain, [x for x in jobs if x["problem"] == name], number):
                    print(json.dumps(line), flush=True)
            except Exception as problem:  # one problem that does not fit is no reason to leave out the others
                print(json.dumps({"problem": name, "error": f"{type(problem).__name__}: {str(problem)[:300]}"}), flush=True)
            if plain.is_gpu:
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
