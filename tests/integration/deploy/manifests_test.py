#!/usr/bin/python3
"""The manifests of launch/tools/kubernetes and launch/tools/compose: what they say of each other fits together,
no key is one that we do not mean, commands keep the contract of head and node, and what keeps secrets
and candidates in is there. kubectl, kubernetes-validate and docker compose are asked too where they
are; nothing is applied."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

import yaml

SOURCE = pathlib.Path(os.environ.get("KERNELMILL_SOURCE_DIR", pathlib.Path(__file__).parents[3]))
KUBERNETES = SOURCE / "launch/tools/kubernetes"
COMPOSE = SOURCE / "launch/tools/compose"

CONTRACT = {
    "head": {"--listen", "--credentials", "--root", "--insecure-loopback"},
    "node": {"--head", "--name", "--gpus", "--compilers", "--credentials", "--insecure-loopback"},
    "status": {"--head", "--json"},
}
POD_KEYS = {
    "terminationGracePeriodSeconds",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "hostUsers",
    "securityContext",
    "shareProcessNamespace",
    "tolerations",
    "initContainers",
    "containers",
    "volumes",
}
CONTAINER_KEYS = {
    "name",
    "image",
    "command",
    "env",
    "ports",
    "startupProbe",
    "readinessProbe",
    "livenessProbe",
    "securityContext",
    "resources",
    "volumeMounts",
}


class Strict(yaml.SafeLoader):
    """YAML in which a key stands once."""


def mapping(loader, node, deep=False):
    own = [k.value for k, _ in node.value if k.tag != "tag:yaml.org,2002:merge"]
    if len(own) != len(set(own)):
        raise yaml.YAMLError(f"a key stands twice, line {node.start_mark.line + 1}: {own}")
    loader.flatten_mapping(node)
    return {loader.construct_object(k, deep=True): loader.construct_object(v, deep=True) for k, v in node.value}


Strict.add_constructor("tag:yaml.org,2002:map", mapping)


def load(path):
    return list(yaml.load_all(path.read_text(), Strict))


def check_command(test, words):
    """kernelmill VERB --option value...; returns the options."""
    words = [str(w) for w in words]
    test.assertIn(words[0], CONTRACT, words)
    options = {w: v for w, v in zip(words, words[1:] + [""]) if w.startswith("--")}
    test.assertLessEqual(options.keys(), CONTRACT[words[0]], words)
    return options


class Kubernetes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kustomization = load(KUBERNETES / "kustomization.yaml")[0]
        cls.documents = [d for f in cls.kustomization["resources"] for d in load(KUBERNETES / f)]
        cls.of = lambda self, kind: [d for d in cls.documents if d["kind"] == kind]
        cls.sets = {d["metadata"]["name"]: d["spec"] for d in cls.documents if d["kind"] == "StatefulSet"}
        cls.pods = {name: s["template"]["spec"] for name, s in cls.sets.items()}

    def containers(self):
        for name, pod in self.pods.items():
            for container in pod["initContainers"] + pod["containers"]:
                yield name, pod, container

    def test_every_file_is_listed_once(self):
        files = {f.name for f in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
        self.assertEqual(sorted(files), sorted(self.kustomization["resources"]))

    def test_every_object_has_a_kind_that_is_meant_and_a_name_of_its_own(self):
        kinds = {"Namespace": "v1", "Service": "v1", "StatefulSet": "apps/v1", "NetworkPolicy": "networking.k8s.io/v1"}
        for d in self.documents:
            self.assertEqual(d["apiVersion"], kinds[d["kind"]])
        names = [(d["kind"], d["metadata"]["name"]) for d in self.documents]
        self.assertEqual(len(names), len(set(names)))
        for _, name in names:
            self.assertRegex(name, r"^[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?$")

    def test_no_secret_is_in_the_tree(self):
        self.assertEqual(self.of("Secret"), [])
        for f in list(KUBERNETES.iterdir()) + list(COMPOSE.iterdir()):
            if f.is_file():
                self.assertNotIn("-----BEGIN", f.read_text())

    def test_pods_and_containers_have_no_key_that_is_not_meant(self):
        for name, pod in self.pods.items():
            self.assertLessEqual(pod.keys(), POD_KEYS, name)
        for name, _, container in self.containers():
            self.assertLessEqual(container.keys(), CONTAINER_KEYS, name)

    def test_selectors_find_their_pods(self):
        services = {d["metadata"]["name"]: d["spec"] for d in self.of("Service")}
        for name, s in self.sets.items():
            labels = s["template"]["metadata"]["labels"]
            self.assertEqual(s["selector"]["matchLabels"], labels)
            self.assertEqual(services[s["serviceName"]]["selector"], labels)
            self.assertEqual(services[s["serviceName"]]["clusterIP"], "None")
        known = {s["template"]["metadata"]["labels"]["app.kubernetes.io/component"] for s in self.sets.values()}
        for policy in self.of("NetworkPolicy"):
            for value in re.findall(r"'app.kubernetes.io/component': '(\w+)'", str(policy["spec"])):
                self.assertIn(value, known | {"client"})

    def test_volumes_are_there_and_used(self):
        for name, pod in self.pods.items():
            claims = {c["metadata"]["name"] for c in self.sets[name].get("volumeClaimTemplates", [])}
            there = {v["name"] for v in pod["volumes"]} | claims
            used = {m["name"] for c in pod["initContainers"] + pod["containers"] for m in c["volumeMounts"]}
            self.assertEqual(there, used, name)
            for v in pod["volumes"]:
                self.assertIn((v.keys() - {"name"}).pop(), {"secret", "emptyDir"})  # never the machine's

    def test_commands_keep_the_contract_and_meet(self):
        head = check_command(self, self.pods["kernelmill-head"]["containers"][0]["command"][1:])
        node = check_command(self, self.pods["kernelmill-node"]["containers"][0]["command"][1:])
        port = head["--listen"].split(":")[1]
        service = next(d for d in self.of("Service") if d["metadata"]["name"] == "kernelmill-head")
        self.assertEqual(str(service["spec"]["ports"][0]["port"]), port)
        self.assertEqual(node["--head"], f"kernelmill-head-0.kernelmill-head:{port}")
        policies = [p for p in self.of("NetworkPolicy") if "ports" in str(p)]
        self.assertTrue(all(port in str(p) for p in policies))
        for pod, options in (("kernelmill-head", head), ("kernelmill-node", node)):
            mounts = [m["mountPath"] for m in self.pods[pod]["containers"][0]["volumeMounts"]]
            self.assertIn(options["--credentials"], mounts)
        self.assertTrue(head["--root"].startswith("/var/lib/kernelmill/"))

    def test_credentials_are_copied_to_where_only_the_user_reads_them(self):
        readme = (KUBERNETES / "README.md").read_text()
        for name, pod in self.pods.items():
            secret = next(v["secret"] for v in pod["volumes"] if "secret" in v)
            self.assertIn(f"create secret generic {secret['secretName']}", readme)
            copy = pod["initContainers"][0]["command"]
            self.assertEqual(copy[:4], ["install", "-m", "0600", "-t"])
            for f in ("ca.pem", "node.pem", "node.key"):
                self.assertIn(f"/run/secrets/kernelmill/{f}", copy)
                self.assertRegex(readme, rf"--from-file=\S*{f}")
            target = next(v for v in pod["volumes"] if v["name"] == "credentials")
            self.assertEqual(target["emptyDir"]["medium"], "Memory")
        self.assertNotIn("--from-file=credentials/ca.key", readme)

    def test_no_pod_is_more_than_it_needs_to_be(self):
        for name, pod in self.pods.items():
            self.assertIs(pod["automountServiceAccountToken"], False)
            self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
            profile = pod["securityContext"]["seccompProfile"]["type"]
            self.assertEqual(profile, "RuntimeDefault" if name == "kernelmill-head" else "Unconfined")
        for name, _, container in self.containers():
            context = container["securityContext"]
            self.assertIs(context["allowPrivilegeEscalation"], False)
            self.assertIs(context["readOnlyRootFilesystem"], True)
            self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
            self.assertNotIn("privileged", context)
            self.assertIn("limits", container["resources"])
        self.assertIs(self.pods["kernelmill-node"]["hostUsers"], False)

    def test_the_head_is_one_with_a_disk_and_probes_that_ask_it(self):
        s = self.sets["kernelmill-head"]
        self.assertEqual(s["replicas"], 1)
        self.assertEqual(s["volumeClaimTemplates"][0]["spec"]["accessModes"], ["ReadWriteOnce"])
        container = self.pods["kernelmill-head"]["containers"][0]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            check_command(self, container[probe]["exec"]["command"][1:])
        self.assertGreaterEqual(self.pods["kernelmill-head"]["terminationGracePeriodSeconds"], 60)
        self.assertNotIn("nvidia.com/gpu", str(self.pods["kernelmill-head"]))

    def test_nodes_have_a_gpu_each_and_time_to_drain(self):
        pod = self.pods["kernelmill-node"]
        self.assertEqual(self.sets["kernelmill-node"]["podManagementPolicy"], "Parallel")
        self.assertEqual(pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], 1)
        self.assertNotIn("nvidia.com/gpu", pod["containers"][0]["resources"]["requests"])
        self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], 600)
        self.assertNotIn("lifecycle", pod["containers"][0])  # SIGTERM drains

    def test_kubectl_builds_them(self):
        if not shutil.which("kubectl"):
            self.skipTest("no kubectl here")
        built = subprocess.run(["kubectl", "kustomize", KUBERNETES], capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        documents = list(yaml.load_all(built.stdout, Strict))
        self.assertEqual(len(documents), len(self.documents))
        image = self.kustomization["images"][0]
        self.assertEqual(set(re.findall(r"image: (\S+)", built.stdout)), {f"{image['newName']}:{image['newTag']}"})

    def test_they_are_of_the_schema(self):
        try:
            import kubernetes_validate
        except ImportError:
            self.skipTest("kubernetes-validate is not installed (140 MB from PyPI)")
        for d in self.documents:
            kubernetes_validate.validate(d, "1.33", strict=True)


class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = load(COMPOSE / "compose.yaml")[0]
        cls.services = cls.file["services"]

    def test_commands_keep_the_contract_and_meet(self):
        for name, s in self.services.items():
            options = check_command(self, s["command"])
            self.assertEqual(options["--credentials"], s["environment"]["KERNELMILL_CREDENTIALS"])
            self.assertEqual(s["environment"]["KERNELMILL_HEAD"], "head:7612")
            if s["command"][0] == "node":
                self.assertEqual(options["--head"], "head:7612")
                self.assertEqual(s["stop_grace_period"], "15m")
                self.assertEqual(s["networks"], ["cluster"])
        self.assertEqual(self.services["head"]["command"][2], "0.0.0.0:7612")
        self.assertEqual(self.services["head"]["healthcheck"]["test"][:3], ["CMD", "kernelmill", "status"])

    def test_names_are_defined(self):
        for s in self.services.values():
            self.assertLessEqual(set(s["networks"]), self.file["networks"].keys())
            self.assertEqual(set(s["secrets"]), self.file["secrets"].keys())
            for volume in s.get("volumes", []):
                self.assertIn(volume.split(":")[0], self.file["volumes"])
            build = s["build"]
            self.assertTrue((COMPOSE / build["context"] / build["dockerfile"]).is_file())
            self.assertIn(f"AS {build['target']}\n", (COMPOSE / "Containerfile").read_text())

    def test_secrets_are_files_without_the_key_of_the_authority(self):
        self.assertEqual(self.file["secrets"].keys(), {"ca.pem", "node.pem", "node.key"})
        for name, secret in self.file["secrets"].items():
            self.assertTrue(secret["file"].endswith("/" + name))
        self.assertIn("credentials/", (COMPOSE / ".gitignore").read_text())

    def test_no_container_is_more_than_it_needs_to_be(self):
        self.assertIs(self.file["networks"]["cluster"]["internal"], True)
        for name, s in self.services.items():
            self.assertIs(s["init"], True)
            self.assertIs(s["read_only"], True)
            self.assertEqual(s["cap_drop"], ["ALL"])
            self.assertIn("no-new-privileges:true", s["security_opt"])
            self.assertFalse(s.keys() & {"privileged", "cap_add", "ports", "network_mode", "pid"})
        self.assertEqual(self.services["head"]["security_opt"], ["no-new-privileges:true"])

    def test_the_image_runs_as_a_user_and_passes_signals(self):
        text = (COMPOSE / "Containerfile").read_text()
        stages = text.split("\nFROM ")
        self.assertTrue(stages[-1].rstrip().endswith("USER 10001:10001"))
        self.assertIn('ENTRYPOINT ["kernelmill"]', text)
        version = re.search(r"project\(kernelmill VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        self.assertIn(f"ARG PACKAGE=kernelmill-{version}-linux-x86_64.deb", text)
        self.assertEqual(self.services["head"]["image"], f"kernelmill:{version}")

    def test_docker_reads_it(self):
        asked = ["docker", "compose", "version"]
        if not shutil.which("docker") or subprocess.run(asked, capture_output=True).returncode != 0:
            self.skipTest("no docker compose here")
        read = subprocess.run(
            ["docker", "compose", "-f", COMPOSE / "compose.yaml", "--profile", "gpu", "config", "--quiet"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(read.returncode, 0, read.stderr)


if __name__ == "__main__":
    unittest.main()
