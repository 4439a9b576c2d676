"""The classes of trainers take rows as they are. Rows are those of the golden files, which the unit tests hold byte for
byte, so no run is needed; classes come from the trainers' own sources."""

import copy
import dataclasses
import importlib
import importlib.machinery
import importlib.util
import sys
import typing
import unittest

from support import SOURCE, classes_of, go_on_with_trainers_python, golden_rows, has, missing, source_of

SKYRL_CHECKS = ["validate_generator_output", "_validate_per_token_side_channels", "_validate_step_wise_fields"]


class Trainers(unittest.TestCase):
    def file(self, package, path):
        found = source_of(package, path)
        if not found:
            self.skipTest(f"{path} is not there: {missing(package)}, or set KERNELMILL_TRAINER_SOURCES")
        return found

    @unittest.skipUnless(has("tinker"), missing("tinker"))
    def test_tinker_reads_each_row_as_a_datum(self):
        from tinker.types._pydantic_types.datum import Datum

        for row in golden_rows("tinker"):
            datum = Datum.model_validate(copy.deepcopy(row))
            self.assertEqual(datum.model_input.length, len(datum.loss_fn_inputs["target_tokens"].data))
            again = datum.model_dump(mode="json", exclude_none=True)
            self.assertEqual(
                again["loss_fn_inputs"]["target_tokens"]["data"], row["loss_fn_inputs"]["target_tokens"]["data"]
            )

    @unittest.skipUnless(has("pydantic"), missing("pydantic"))
    def test_verl_reads_each_row_as_an_agent_loop_output(self):
        import pydantic

        path = self.file("verl", "verl/experimental/agent_loop/agent_loop.py")
        names = classes_of(
            path,
            ["AgentLoopMetrics", "AgentLoopOutput"],
            {"BaseModel": pydantic.BaseModel, "Optional": typing.Optional, "Any": typing.Any},
        )
        for row in golden_rows("verl"):
            output = names["AgentLoopOutput"](**row)
            self.assertLessEqual(set(row), set(names["AgentLoopOutput"].model_fields), "no field that it does not know")
            self.assertEqual(len(output.response_ids), len(output.response_mask))
            self.assertEqual(len(output.response_ids), len(output.response_logprobs))

    @unittest.skipUnless(has("msgspec", "numpy"), missing("msgspec"))
    def test_prime_rl_reads_each_row_as_a_training_sample(self):
        import msgspec

        path = self.file("prime_rl", "prime_rl/transports/rollouts/types.py")
        names = classes_of(path, ["EncodedTensor", "RoutedExperts", "TrainingSample"], {"msgspec": msgspec})
        kind = names["TrainingSample"]
        for row in golden_rows("prime-rl"):
            sample = kind(**row)
            # Through its own wire format, which checks every type.
            again = msgspec.msgpack.decode(msgspec.msgpack.encode(sample), type=kind)
            self.assertEqual(again.token_ids, row["token_ids"])
            for key in ("mask", "logprobs", "temperatures", "advantages"):
                self.assertEqual(len(getattr(again, key)), len(row["token_ids"]), key)

    @unittest.skipUnless(has("numpy"), missing("numpy"))
    def test_skyrl_finds_each_row_a_valid_generator_output(self):
        import logging

        import numpy

        base = self.file("skyrl", "skyrl/train/generators/base.py")
        checks = self.file("skyrl", "skyrl/train/utils/trainer_utils.py")
        known = keys_of_typed_dict(base, "GeneratorOutput")
        names = classes_of(
            checks,
            SKYRL_CHECKS,
            {
                "np": numpy,
                "logger": logging.getLogger(),
                "GeneratorOutput": dict,
                "SAMPLE_SUPPORT_FIELD": "rollout_sample_support",
            },
        )
        trajectory = classes_of(base, ["TrajectoryID"], {"dataclass": dataclasses.dataclass})["TrajectoryID"]
        for row in golden_rows("skyrl"):
            self.assertEqual(list(row), known)
            row["trajectory_ids"] = [trajectory(**x) for x in row["trajectory_ids"]]
            names["validate_generator_output"](len(row["trajectory_generation_times"]), row, step_wise=True)

    @unittest.skipUnless(has("pydantic"), missing("pydantic"))
    def test_megatron_reads_each_row_as_a_rollout_group(self):
        import pydantic

        path = self.file("megatron", "megatron/rl/types/rollout.py")
        names = classes_of(
            path,
            ["AgentBaseModel", "Rollout", "TokenRollout", "RolloutGroup"],
            {
                "BaseModel": pydantic.BaseModel,
                "model_validator": pydantic.model_validator,
                "Rollouts": list,
                "KNOWN_ROLLOUT_STATUSES": ("ok", "placeholder", "masked", "graded"),
            },
        )
        for row in golden_rows("megatron"):
            self.assertEqual(names["RolloutGroup"](**row).uid, row["uid"])
            for rollout in row["rollouts"]:
                read = names["TokenRollout"](**rollout)
                self.assertEqual([len(x) for x in read.trajectory], [len(x) for x in read.generation_mask])
                self.assertEqual([sum(x) for x in read.generation_mask], [len(x) for x in read.logprobs])

    @unittest.skipUnless(has("pydantic"), missing("pydantic"))
    def test_harbor_reads_each_row_as_a_trajectory(self):
        package = self.file("harbor", "harbor/models/trajectories/trajectory.py").parent
        stand_in(package.parents[2], "harbor", "harbor.models.trajectories")
        kind = importlib.import_module("harbor.models.trajectories.trajectory").Trajectory
        for row in golden_rows("harbor"):
            self.assertEqual(
                kind.model_validate(row).to_json_dict()["steps"][-1]["message"], row["steps"][-1]["message"]
            )

    @unittest.skipUnless(has("pydantic"), missing("pydantic"))
    def test_harbor_reads_the_settings_of_a_task(self):
        path = self.file("harbor", "harbor/models/task/config.py")
        stand_in(path.parents[3], "harbor")
        try:
            kind = importlib.import_module("harbor.models.task.config").TaskConfig
        except ImportError as x:
            self.skipTest(str(x))
        files = golden_files("harbor-tasks.txt")
        self.assertEqual(list(files), ["task.toml", "instruction.md", "environment/Dockerfile", "tests/test.sh"])
        task = kind.model_validate_toml(files["task.toml"])
        self.assertEqual(task.metadata["kernelmill_task"], "native/row_sum")
        self.assertEqual(
            (task.agent.timeout_sec, task.verifier.timeout_sec, task.environment.build_timeout_sec), (1800, 900, 1200)
        )

    @unittest.skipUnless(has("openai"), missing("openai"))
    def test_openai_reads_the_answers_of_nemo_gym_rows(self):
        """NeMo-Gym's response is OpenAI's; the items of its output are its own, with feedback among them."""
        from openai.types.responses import Response, ResponseOutputMessage

        for row in golden_rows("nemo-gym"):
            answers = [x for x in row["response"]["output"] if x["role"] == "assistant"]
            Response.model_validate({**row["response"], "output": answers})
            for x in answers:
                ResponseOutputMessage.model_validate(x)
                self.assertEqual(len(x["generation_token_ids"]), len(x["generation_log_probs"]))
            prompts = [x["prompt_token_ids"] + x["generation_token_ids"] for x in answers]
            for before, after in zip(prompts, prompts[1:]):
                self.assertEqual(after[: len(before)], before, "each prompt goes on from the turn before")

    def test_nemo_gym_reads_each_row_as_a_response_of_its_verifiers(self):
        path = self.file("nemo_gym", "nemo_gym/base_resources_server.py")
        sys.path.append(str(path.parents[1]))
        try:
            from nemo_gym.base_resources_server import BaseVerifyResponse
        except ImportError as x:
            self.skipTest(str(x))
        for row in golden_rows("nemo-gym"):
            read = BaseVerifyResponse.model_validate(row)
            self.assertEqual(read.reward, row["reward"])
            self.assertEqual([x.role for x in read.response.output], [x["role"] for x in row["response"]["output"]])
            self.assertEqual(
                read.response.output[0].generation_token_ids, row["response"]["output"][0]["generation_token_ids"]
            )


def stand_in(folder, *packages):
    """Packages whose own __init__ files import clouds are their folders alone."""
    for name in packages:
        path = folder.joinpath(*name.split("."))
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(path)]
        sys.modules.setdefault(name, importlib.util.module_from_spec(spec))


def golden_files(name):
    """A golden file that holds several: {path: text}."""
    result, path = {}, None
    for line in (SOURCE / "tests/unit/export/golden" / name).read_text().splitlines(keepends=True):
        if line.startswith("== "):
            path = line[3:].split(" (")[0].strip()
            result[path] = ""
        else:
            result[path] += line
    return result


def keys_of_typed_dict(path, name):
    import ast

    for node in ast.parse(path.read_text()).body:
        if getattr(node, "name", None) == name:
            return [x.target.id for x in node.body if isinstance(x, ast.AnnAssign)]
    raise KeyError(name)


if __name__ == "__main__":
    go_on_with_trainers_python()
    unittest.main()
