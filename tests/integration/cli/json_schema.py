"""As much of JSON Schema as the schemas in configs/schemas use; a keyword that is not known is an error."""

import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
ABOUT = {"$schema", "$id", "title", "description"}
KNOWN = ABOUT | {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "pattern",
    "minimum",
}


def is_of(kind, value):
    if kind in ("number", "integer"):
        return not isinstance(value, bool) and isinstance(value, int if kind == "integer" else (int, float))
    return isinstance(value, TYPES[kind])


def problems(schema, value, where="$"):
    if strange := set(schema) - KNOWN:
        raise ValueError(f"keywords that are not checked here: {strange}")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_of(x, value) for x in kinds):
        yield f"{where} is no {' or '.join(kinds)}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is none of {schema['enum']}"
    if "anyOf" in schema and all(list(problems(x, value, where)) for x in schema["anyOf"]):
        yield f"{where} fits none of its forms"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where} does not match {schema['pattern']}"
    if is_of("number", value) and value < schema.get("minimum", value):
        yield f"{where} is below {schema['minimum']}"
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                yield f"{where} lacks {key}"
        for key, item in value.items():
            of_key = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            if of_key is False:
                yield f"{where} has the key {key}"
            elif isinstance(of_key, dict):
                yield from problems(of_key, item, f"{where}.{key}")
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from problems(schema.get("items", {}), item, f"{where}[{i}]")
