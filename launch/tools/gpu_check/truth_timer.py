"""One plain process that times modules: `python3 -m gpu_check.truth_timer JOBS DEVICE`. Nothing of Kernelmill is in it.

JOBS is a file of lines {"problem", "module", "file", "model", "inputs"}. Prints one line for each: device_ms, CUDA
events around calls that were queued behind a delay, divided by their number; host_ms, what the host took to queue them;
call_ms, its clock over calls back to back until the GPU is done, likewise; how many times shorter than those of the
problem's own model device_ms and call_ms are, by neighbouring rows; and alone_ms, events around single calls. All are
medians, and before each the caches are filled with clean lines."""

import importlib.util
import json
import statistics
import sys
import time

import torch

SINGLE_CALLS = 20
QUEUED_CALLS = 16
DELAY_CYCLES = 20_000_000  # some 10 ms
ROW_CALLS = 64
ROUNDS = 12  # of short calls; each module has a row in each
LONG_MS = 2  # calls of so much have fewer rounds
ROW_MS = 100  # a row is no longer, but for the calls that it needs
FEWEST_CALLS = 3
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
        self.flushed = torch.ones((FLUSH_BYTES if self.is_gpu else 64 << 20) // 4, device=device)
        self.next = 0  # set
        self.sync = torch.cuda.synchronize if self.is_gpu else (lambda: None)

    def inputs(self, problem):
        """Sets of inputs; as many as 2 GiB hold, 16 at most, so that a row finds nothing in the caches."""
        with torch.device(self.device) if hasattr(torch.device, "__enter__") else torch.no_grad():
            first = [x.to(self.device) for x in problem.get_inputs()]
            size = sum(x.numel() * x.element_size() for x in first) * 2
            count = max(1, min(16, SETS_BYTES // size))
            return [first] + [[x.to(self.device) for x in problem.get_inputs()] for _ in range(count - 1)]

    def flush(self):
        """Reads more than the caches hold: nothing is left there that would have to be written back later."""
        self.flushed.sum()

    def between_events(self, call, sets, count):
        """Milliseconds a call, by events and of the host to queue them."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        kept = [None] * len(sets)  # so that outputs have memory of their own
        start.record()
        began = time.perf_counter()
        for _ in range(count):
            at = self.next % len(sets)
            self.next += 1
            kept[at] = call(*sets[at])
        host = time.perf_counter() - began
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / count, host / count * 1e3

    def single(self, call, sets):
        """Milliseconds of single calls, by CUDA events."""
        found = []
        for _ in range(SINGLE_CALLS if self.is_gpu else 0):
            self.flush()
            found.append(self.between_events(call, sets, 1)[0])
        return found

    def queued(self, call, sets, calls):
        """As between_events(), of a row of calls that the GPU finds all there."""
        self.flush()
        torch.cuda._sleep(DELAY_CYCLES)
        return self.between_events(call, sets, calls)

    def row(self, call, sets, calls):
        """Milliseconds a call, by the host's clock."""
        kept = [None] * len(sets)
        self.flush()
        self.sync()
        started = time.perf_counter()
        for _ in range(calls):
            at = self.next % len(sets)
            self.next += 1
            kept[at] = call(*sets[at])
        self.sync()
        return (time.perf_counter() - started) / calls * 1e3

    def warm(self, call, sets):
        """Until what is built at first is there; returns about how long a call takes."""
        for one in sets[:3]:
            call(*one)
        self.sync()
        return min(self.row(call, sets, 2) for _ in range(3))


def calls_of(most, about_ms):
    """How many calls make a row."""
    return max(FEWEST_CALLS, min(most, int(ROW_MS / max(about_ms, 1e-3))))


def measure(plain, rows, number):
    problem = load(rows[0]["model"], f"problem_{number}")
    sets = plain.inputs(problem)
    models = {}
    for i, x in enumerate(rows):
        torch.manual_seed(1)
        module = load(x["file"], f"{number}_{i}")
        models[x["module"]] = getattr(module, x["class"])().to(plain.device)
    singles, queued, host, rows_of = ({name: [] for name in models} for _ in range(4))
    about = {name: plain.warm(model, sets) for name, model in models.items()}
    is_long = max(about.values()) >= LONG_MS
    for name, model in models.items():
        plain.warm(model, sets)
        singles[name] = plain.single(model, sets)
    # By turns: a host is faster for some seconds and then slower, and calls that launches limit are too.
    for _ in range(ROUNDS // 3 if is_long else ROUNDS):
        for name, model in models.items():
            plain.row(model, sets, 2)
            rows_of[name].append(plain.row(model, sets, calls_of(ROW_CALLS, about[name])))
            if plain.is_gpu:
                for kept, ms in zip((queued, host), plain.queued(model, sets, calls_of(QUEUED_CALLS, about[name]))):
                    kept[name].append(ms)
    middle = lambda x: statistics.median(x) if x else None
    ratio = lambda mine, own: middle([b / a for a, b in zip(mine, own)])
    for x in rows:
        mine = x["module"]
        yield {
            "problem": x["problem"],
            "module": mine,
            "alone_ms": middle(singles[mine]),
            "device_ms": middle(queued[mine]),
            "host_ms": middle(host[mine]),
            "call_ms": middle(rows_of[mine]),
            "device_ratio": ratio(queued[mine], queued["model"]),
            "call_ratio": ratio(rows_of[mine], rows_of["model"]),
            "queued": queued[mine],
            "rows": rows_of[mine],
        }


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
                print(
                    json.dumps({"problem": name, "error": f"{type(problem).__name__}: {str(problem)[:300]}"}),
                    flush=True,
                )
            if plain.is_gpu:
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
