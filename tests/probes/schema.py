"""As much of JSON Schema as selftest.schema.json uses; a keyword that it does not know is an error, not ignored."""
import re

TYPES = {"object": dict, "array": list, "string": str, "integer": int}
KNOWN = {"$schema", "title", "description", "type", "additionalProperties", "required", "properties", "const", "enum", "pattern", "minimum",
         "minLength", "items"}


def check(schema, value, at="$"):
    unknown = set(schema) - KNOWN
    assert not unknown, "%s: the validator does not know %s" % (at, unknown)
    if "const" in schema:
        assert value == schema["const"], "%s: %r" % (at, value)
    if "enum" in schema:
        assert value in schema["enum"], "%s: %r" % (at, value)
    if "type" in schema:
        assert isinstance(value, TYPES[schema["type"]]) and not isinstance(value, bool), "%s: %r" % (at, value)
    if "pattern" in schema:
        assert re.search(schema["pattern"], value), "%s: %r" % (at, value)
    if "minimum" in schema:
        assert value >= schema["minimum"], "%s: %r" % (at, value)
    if "minLength" in schema:
        assert len(value) >= schema["minLength"], "%s: %r" % (at, value)
    if isinstance(value, dict):
        for name in schema.get("required", []):
            assert name in value, "%s: no %s" % (at, name)
        for name, sub in value.items():
            if name in schema.get("properties", {}):
                check(schema["properties"][name], sub, "%s.%s" % (at, name))
            else:
                assert schema.get("additionalProperties", True), "%s: %s is not in the schema" % (at, name)
    if isinstance(value, list) and "items" in schema:
        for i, sub in enumerate(value):
            check(schema["items"], sub, "%s[%d]" % (at, i))
