"""The types with which vLLM and SGLang read requests and write answers, taken from a wheel of theirs without installing
it: the modules that define them are run, and whatever else they import stands for anything. Reads records of requests
and answers, and prints what does not fit.

    PYTHON engine_types.py WHEEL RECORDS.json

PYTHON needs pydantic, msgspec, openai, numpy and torch.
"""

import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import pathlib
import re
import sys
import types
import zipfile
import zipimport

WHOLE = {
    "vllm": r"vllm/entrypoints/(?!anthropic|cohere|pooling|speech|mcp)[\w/]*protocol\.py"
    r"|vllm/(sampling_params|logprobs|pooling_params)\.py"
    r"|vllm/utils/collection_utils\.py|vllm/v1/serial_utils\.py",
    "sglang": r"sglang/srt/entrypoints/openai/protocol\.py|sglang/srt/managers/io_struct\.py"
    r"|sglang/srt/sampling/sampling_params\.py|sglang/srt/utils/(field_validators|msgspec_utils)\.py",
}
# What a request to a path is read as, and what its answer is: one of the types that the version has. Every path must be
# one of the engine's routes.
TYPES = {
    "vllm": {
        "/v1/chat/completions": (("ChatCompletionRequest",), ("ChatCompletionResponse",)),
        "/tokenize": (("TokenizeChatRequest", "TokenizeCompletionRequest"), ("TokenizeResponse",)),
        "/detokenize": (("DetokenizeRequest",), ("DetokenizeResponse",)),
        "/inference/v1/generate": (("GenerateRequest",), ("GenerateTokensResponse", "GenerateResponse")),
        "/v1/load_lora_adapter": (("LoadLoRAAdapterRequest",), ()),
        "/v1/unload_lora_adapter": (("UnloadLoRAAdapterRequest",), ()),
    },
    "sglang": {
        "/v1/chat/completions": (("ChatCompletionRequest",), ("ChatCompletionResponse",)),
        "/v1/tokenize": (("TokenizeRequest",), ("TokenizeResponse",)),
        "/v1/detokenize": (("DetokenizeRequest",), ("DetokenizeResponse",)),
        "/generate": (("GenerateReqInput",), ()),
        "/update_weights_from_disk": (("UpdateWeightFromDiskReqInput",), ("UpdateWeightFromDiskReqOutput",)),
        "/update_weight_version": (("UpdateWeightVersionReqInput",), ()),
        "/load_lora_adapter": (("LoadLoRAAdapterReqInput",), ()),
        "/unload_lora_adapter": (("UnloadLoRAAdapterReqInput",), ()),
        "/abort_request": (("AbortReq",), ()),
    },
}
# Fields of answers that the client reads, by the type that has them.
READ = {
    "vllm": {
        "ChatCompletionResponse": "model usage prompt_token_ids choices",
        "UsageInfo": "prompt_tokens completion_tokens",
        "ChatCompletionResponseChoice": "message finish_reason logprobs token_ids",
        "TokenizeResponse": "tokens",
        "DetokenizeResponse": "prompt",
    },
    "sglang": {
        "ChatCompletionResponse": "model usage metadata choices",
        "UsageInfo": "prompt_tokens completion_tokens",
        "ChatCompletionResponseChoice": "message finish_reason logprobs prompt_token_ids response_token_ids",
        "TokenizeResponse": "tokens",
        "DetokenizeResponse": "text",
    },
}
# What older versions lack: they pass over a field of a request, and the client does without a field of an answer.
NEWER = {
    "vllm": {},
    "sglang": {
        "ChatCompletionRequest": "return_token_ids",
        "TokenizeRequest": "add_generation_prompt",
        "ChatCompletionResponseChoice": "prompt_token_ids response_token_ids",
    },
}
NEWER_ROUTES = {"vllm": {"/update_weight_version"}, "sglang": set()}


class AnyKind(type):
    """Of a class that takes any value; its names, items and calls are of the same kind."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __getitem__(cls, _):
        return cls


class Anything(metaclass=AnyKind):
    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *values, **more):
        return values[0] if len(values) == 1 and callable(values[0]) and not more else Anything()

    def __bool__(self):
        return False

    @classmethod
    def __get_pydantic_core_schema__(cls, *_):
        from pydantic_core import core_schema

        return core_schema.any_schema()


class Stub(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "random_uuid":
            made = lambda: "id"  # of fields that have one by default
        elif name.endswith(("Error", "Exception")):
            made = type(name, (ValueError,), {"__init__": lambda self, *words, **_: ValueError.__init__(self, *words)})
        elif name.isupper():
            made = 1 << 30  # a bound
        elif name[0].isupper():
            made = AnyKind(name, (Anything,), {})
        else:
            made = Anything()
        setattr(self, name, made)
        return made


class Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, wheel, roots, whole):
        self.wheel, self.roots, self.whole = wheel, roots, whole

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.roots:
            return None
        if name in self.whole:
            return zipimport.zipimporter("/".join([self.wheel, *name.split(".")[:-1]])).find_spec(name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Stub(spec.name)

    def exec_module(self, module):
        pass


class Engine:
    def __init__(self, wheel):
        self.name, self.version = pathlib.Path(wheel).name.split("-")[:2]
        self.files = zipfile.ZipFile(wheel)
        names = [x for x in self.files.namelist() if re.fullmatch(WHOLE[self.name], x)]
        whole = {x.removesuffix(".py").replace("/", ".") for x in names}
        absent = {
            x
            for x in ("cloudpickle", "zmq", "xgrammar", "partial_json_parser", "cbor2", "pybase64", "blake3")
            if importlib.util.find_spec(x) is None
        }
        sys.meta_path.insert(0, Modules(str(wheel), {self.name} | absent, whole))
        import msgspec

        msgspec.msgpack.Decoder = msgspec.msgpack.Encoder = Anything  # between the engine's own processes
        self.modules, self.unread, self.lacks = [], {}, set()
        for name in sorted(whole):
            try:
                self.modules.append(importlib.import_module(name))
            except Exception as why:  # it is told where a type of it is asked for
                self.unread[name] = why

    def find(self, names):
        """The types of these names."""
        kinds = {}
        for name in names:
            for module in self.modules:
                found = vars(module).get(name)
                if isinstance(found, type) and not isinstance(found, AnyKind):
                    kinds.setdefault(name, found)
        return list(kinds.values())

    def unknown(self, kind, names):
        """Those that the type does not have; what only newer versions have is noted."""
        lacking = set(names) - fields_of(kind)
        newer = lacking & set(NEWER[self.name].get(kind.__name__, "").split())
        self.lacks |= {f"{kind.__name__}.{x}" for x in newer}
        return lacking - newer

    def routes(self):
        text = "".join(
            self.files.read(x).decode()
            for x in self.files.namelist()
            if x.startswith((self.name + "/entrypoints/", self.name + "/srt/entrypoints/")) and x.endswith(".py")
        )
        return set(re.findall(r"""["'](/[\w/]+)["']""", text))


def fields_of(kind):
    if hasattr(kind, "model_fields"):
        names = {x.alias or name for name, x in kind.model_fields.items()}
        return names | {x.serialization_alias for x in kind.model_fields.values() if x.serialization_alias}
    if hasattr(kind, "__struct_fields__"):
        return set(kind.__struct_fields__)
    if dataclasses.is_dataclass(kind):
        return {x.name for x in dataclasses.fields(kind)}
    return set(inspect.signature(kind).parameters)


def misfits(engine, kind, value):
    """What is wrong with a document that is to be of this type; fields that it does not have too."""
    import pydantic

    unknown = sorted(engine.unknown(kind, value))
    if unknown:
        yield f"{kind.__name__} has no {', '.join(unknown)}"
    try:
        if hasattr(kind, "__struct_fields__") and not hasattr(kind, "__get_pydantic_core_schema__"):
            kind(**{k: v for k, v in value.items() if k not in unknown})
        else:
            pydantic.TypeAdapter(kind).validate_python(value)
    except Exception as why:  # whatever the type says
        yield f"{kind.__name__}: {why}"


def sampling_misfits(engine, body):
    sampling = body.get("sampling_params")
    if isinstance(sampling, dict):
        kinds = engine.find(["SamplingParams"])
        unknown = sorted(set(sampling) - fields_of(kinds[0])) if kinds else ["a type of its own"]
        if unknown:
            yield f"SamplingParams has no {', '.join(unknown)}"


def check(engine, records):
    wrong, seen = [], set()
    routes = engine.routes()
    table = TYPES[engine.name]
    for one in records:
        path = one["path"].split("?")[0]
        asked, told = table.get(path, ((), ()))
        if one["request"] is not None and path not in routes:
            if path in NEWER_ROUTES[engine.name]:
                engine.lacks.add(path)
            else:
                wrong.append(f"{path}: there is no such route")
            continue
        for names, value in ((asked, one["request"]), (told, one["answer"] if one["status"] == 200 else None)):
            if not names or not isinstance(value, dict):
                continue
            kinds = engine.find(names)
            if not kinds:
                wrong.append(f"{path}: there is no {' or '.join(names)}; not read: {engine.unread}")
                continue
            found = {x.__name__: list(misfits(engine, x, value)) for x in kinds}
            kind = min(found, key=lambda x: len(found[x]))
            seen.add(kind)
            wrong += [f"{path}: {x}" for x in found[kind]]
        wrong += [f"{path}: {x}" for x in sampling_misfits(engine, one["request"] or {})]
    for name, read in READ[engine.name].items():
        kinds = engine.find([name])
        lacking = sorted(engine.unknown(kinds[0], read.split())) if kinds else ["anything"]
        if lacking:
            wrong.append(f"{name}, which the client reads, has no {', '.join(lacking)}")
    return {
        "engine": engine.name,
        "version": engine.version,
        "types": sorted(seen),
        "lacks": sorted(engine.lacks),
        "wrong": sorted(set(wrong)),
    }


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:
        print(json.dumps(check(Engine(sys.argv[1]), json.load(file))))
