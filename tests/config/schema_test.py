#!/usr/bin/env python3
"""The JSON Schemas that the decoder's descriptions come to, held against the decoder itself.

usage: schema_test.py SOURCE_DIR CONFIG_SCHEMA YAML_TO_JSON
"""

import json
import subprocess
import sys
import unittest
from pathlib import Path

import jsonschema

SOURCE, CONFIG_SCHEMA, YAML_TO_JSON = (Path(argument) for argument in sys.argv[1:4])
CORPUS = SOURCE / "tests/config/faulty"
KINDS = {"server": "tpd.yaml", "registry": "registry.yaml"}

# What only the decoder can know: other files, other keys, the machine, arithmetic.
BEYOND_STRUCTURE = set((CORPUS / "beyond_schema.txt").read_text(encoding="utf-8").split())


def schema_of(kind: str) -> dict:
    return json.loads(subprocess.run([CONFIG_SCHEMA, kind], check=True, capture_output=True, text=True).stdout)


def values_of(files: list[Path]) -> list:
    output = subprocess.run([YAML_TO_JSON, *files], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


class Schemas(unittest.TestCase):
    def setUp(self) -> None:
        self.validators = {kind: jsonschema.Draft202012Validator(schema_of(kind)) for kind in KINDS}

    def test_are_schemas(self) -> None:
        for validator in self.validators.values():
            jsonschema.Draft202012Validator.check_schema(validator.schema)
            self.assertEqual(validator.schema["$schema"], "https://json-schema.org/draft/2020-12/schema")

    def test_take_the_sample_files(self) -> None:
        for kind, name in KINDS.items():
            for file in [SOURCE / "config" / name, *sorted((SOURCE / "tests/config/good").glob(f"*{name}"))]:
                [value] = values_of([file])
                self.assertEqual([error.message for error in self.validators[kind].iter_errors(value)], [], file)

    def test_every_key_is_described(self) -> None:
        def walk(schema: object, path: str) -> None:
            if isinstance(schema, list):
                for item in schema:
                    walk(item, path)
            if not isinstance(schema, dict):
                return
            for key, value in schema.get("properties", {}).items():
                if "then" not in path and "if" not in path:
                    self.assertTrue(value.get("description"), f"{path}/{key}")
            for key, value in schema.items():
                walk(value, f"{path}/{key}")

        for validator in self.validators.values():
            walk(validator.schema, "")

    def test_refuse_what_the_decoder_refuses(self) -> None:
        taken, unreadable = set(), 0
        for kind, validator in self.validators.items():
            files = sorted((CORPUS / kind).glob("*.yaml"))
            for file, value in zip(files, values_of(files), strict=True):
                if value is None:
                    unreadable += 1
                elif validator.is_valid(value):
                    taken.add(f"{kind}/{file.stem}")
        self.assertEqual(taken, BEYOND_STRUCTURE)
        self.assertLess(unreadable, 25)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
