"""Jobs on real sshd hosts through tpd and tp: two machines, one that is cut off, one that is declared dead."""

import json
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from gpu_test import Machine
from harness import Deployment, main, wait_until

HOSTS = Path(__file__).resolve().parent.parent / "engines" / "ssh-hosts"
HOSTS_ID = 30
CHARLM = Path(__file__).resolve().parents[2] / "examples" / "charlm"

REGISTRY = """\
series:
  rack:
    gpus_per_node: 8
    virtual_cards: true
    executor: gpu/rack
    nodes:
{nodes}
profiles:
  rack: {{series: rack, default_shape: 8}}
"""


class NodesTest(unittest.TestCase):
    """Two hosts and a tpd that reaches them, for all tests of the class."""

    registry = REGISTRY
    policy = {}

    @classmethod
    def hosts(cls, *words):
        return subprocess.run([HOSTS, *map(str, words)], check=True, capture_output=True, text=True, timeout=120,
                              env=os.environ | {"TP_HOSTS_ID": str(HOSTS_ID), "TP_HOSTS_OWNER": str(os.getpid())})

    @classmethod
    def setUpClass(cls):
        cls.hosts("up", 2)
        cls.addClassCleanup(cls.hosts, "down")
        directory = Path(f"/tmp/tp-hosts-{HOSTS_ID}")
        cls.d = Deployment(**cls.policy)
        cls.addClassCleanup(cls.d.close)
        nodes = "\n".join(f"      - {{name: node{i}, address: 10.214.{HOSTS_ID}.{10 + i}}}" for i in (1, 2))
        (cls.d.config / "registry.yaml").write_text(cls.registry.format(nodes=nodes))
        tpd_yaml = cls.d.config / "tpd.yaml"
        tpd_yaml.write_text(tpd_yaml.read_text() + f"""\
  executors:
    - {{provider: gpu, profile: rack, backend: node}}
backends:
  node: {{user: root, identity_file: {directory}/client_key, known_hosts: {directory}/known_hosts}}
""")
        cls.d.start()

    def node(self, name):
        return self.d.json("admin", "nodes", name)["nodes"][0]

    def assert_succeeded(self, run):
        self.assertEqual(self.d.wait(run), 0, self.d.show(run))


class Rack(NodesTest):
    def test_runs_on_two_machines_that_reach_each_other(self):
        run = self.d.submit("sh", "-c", 'echo "$(hostname) rank $TP_NODE_RANK of $TP_NNODES head $MASTER_ADDR"',
                            flags=["--profile", "rack:16"])
        self.assert_succeeded(run)
        for rank in (0, 1):
            log = self.d.tp("logs", run, "--rank", rank).stdout.decode()
            self.assertRegex(log, rf"node{rank + 1} rank {rank} of 2 head 10\.214\.")
        usage = self.d.json("usage", "--by", "run", "--audit")
        self.assertTrue(any(one["run"] == run for one in usage["intervals"]), usage)

    def test_one_rank_that_fails_ends_the_other(self):
        run = self.d.submit("sh", "-c", '[ "$TP_NODE_RANK" = 1 ] && exit 3; sleep 600', flags=["--profile", "rack:16"])
        self.assertEqual(self.d.wait(run), 1)
        self.assertIn("rank 0-1", self.d.step(run)["failure"]["sentence"])

    def test_what_a_cut_off_machine_runs_goes_on(self):
        run = self.d.submit("sh", "-c", "sleep 25; echo through", flags=["--profile", "rack:8"])
        wait_until(lambda: self.d.step(run)["state"] == "RUNNING", what="the job to run")
        host = re.search(r"node(\d)", str(self.d.show(run)))[1]
        self.hosts("cut", host, "blackhole")
        try:
            wait_until(lambda: f"node{host}" in str(self.d.step(run)["state_text"]), 60, "the reason to show")
            self.assertEqual(self.d.step(run)["state"], "RUNNING")
            wait_until(lambda: not self.node(f"node{host}")["health"]["reachable"], 60, "tp admin nodes to know")
        finally:
            self.hosts("mend", host)
        self.assert_succeeded(run)
        self.assertIn("through", self.d.tp("logs", run).stdout.decode())

    def test_a_drained_machine_takes_nothing_new(self):
        self.d.tp("admin", "node", "drain", "node1", "--reason", "new power supply")
        try:
            run = self.d.submit("hostname", flags=["--profile", "rack:8"])
            self.assert_succeeded(run)
            self.assertIn("node2", self.d.tp("logs", run).stdout.decode())
            waits = self.d.submit("hostname", flags=["--profile", "rack:16"])
            why = wait_until(lambda: self.d.tp("why", waits).stdout.decode(), what="a reason")
            self.assertIn("node1 is drained by", why)
            self.assertIn("new power supply", why)
        finally:
            self.d.tp("admin", "node", "undrain", "node1")
        self.assert_succeeded(waits)


class Dead(NodesTest):
    def test_a_dead_machine_is_declared_so_and_comes_back(self):
        run = self.d.submit("sh", "-c", "echo $$ >pid; sleep 600", flags=["--profile", "rack:16"])
        wait_until(lambda: self.d.step(run)["state"] == "RUNNING", what="the job to run")
        self.hosts("cut", 2, "blackhole")
        try:
            wait_until(lambda: "node2" in str(self.d.step(run)["state_text"]), 60, "the reason to show")
            refused = self.d.tp("admin", "node", "dead", "node2", check=False)
            self.assertEqual(refused.returncode, 2)
            self.assertEqual(self.d.step(run)["state"], "RUNNING")
            self.d.tp("admin", "node", "dead", "node2", "--yes", "--reason", "burnt")
            self.assertEqual(self.d.wait(run), 1)
            self.assertEqual(self.d.step(run)["failure"]["kind"], "node_lost", self.d.step(run))
            # Its processes are still there: nothing may start beside them.
            early = self.d.tp("admin", "node", "undrain", "node2", check=False)
            self.assertNotEqual(early.returncode, 0)
        finally:
            self.hosts("mend", 2)

        def back():
            return self.d.tp("admin", "node", "undrain", "node2", check=False).returncode == 0
        wait_until(back, 120, "the old processes to end and the node to be taken back")
        again = self.d.submit("hostname", flags=["--profile", "rack:16"])
        self.assert_succeeded(again)


class Cards(NodesTest):
    """Two cards on each host, and a nvidia-smi there that says what the test wants."""

    registry = REGISTRY.replace("gpus_per_node: 8", "gpus_per_node: 2").replace("    virtual_cards: true\n", "").replace(
        "default_shape: 8", "default_shape: 2")
    policy = {"infrastructure_retries": 1}

    def setUp(self):
        self.machines = {}
        for host in (1, 2):
            machine = self.machines[host] = Machine(self.d.root / self.id() / f"host{host}")
            self.hosts("exec", host, "sh", "-c", f"echo 'PATH={machine.directory}:$PATH' >/root/.bashrc")
            self.addCleanup(machine.say)

    def test_a_failure_after_a_card_was_lost_is_retried_on_the_other_machine(self):
        go = self.d.root / "go"
        script = f'[ "$(hostname)" = node2 ] && exit 0; while [ ! -e {go} ]; do sleep 0.1; done; exit 3'
        run = self.d.submit("sh", "-c", script, flags=["--profile", "rack:2"])
        wait_until(lambda: self.d.step(run)["state"] == "RUNNING", what="the job to run")
        self.assertIn("node1", str(self.d.show(run)))
        self.machines[1].say(lost=[1])
        wait_until(lambda: "GPU is lost" in str(self.d.json("admin", "nodes")), 60, "the lost card to be taken out")
        go.touch()
        self.assert_succeeded(run)
        first = self.d.step(run)["past_attempts"][0]
        self.assertEqual(first["failure"]["kind"], "gpu_lost", first)
        self.machines[1].say()
        self.d.tp("admin", "node", "undrain", "node1", "--card", 1)

    def test_a_launch_is_refused_where_others_compute(self):
        self.machines[1].say(used_by={0: "python"})
        run = self.d.submit("true", flags=["--profile", "rack:4"])
        wait_until(lambda: "process 4711 (python)" in self.d.tp("why", run).stdout.decode(), 60, "the reason to show")
        self.machines[1].say()
        self.assert_succeeded(run)


class Example(NodesTest):
    def test_charlm_trains_across_two_machines(self):
        shutil.copytree(CHARLM, self.d.work / "charlm")
        run = self.d.submit("/usr/bin/python3", "train.py", "--steps", 60, "--hidden", 32, "--seq-len", 32, "--batch", 8,
                            "--log-every", 1, flags=["--profile", "rack:16", "--dir", "charlm"])
        self.assertEqual(self.d.wait(run, timeout_s=280), 0, self.d.tp("logs", run).stdout[-2000:])
        losses = [json.loads(line)["loss"] for line in (self.d.attempt_dir(run) / "metrics.jsonl").read_text().splitlines()
                  if "loss" in line]
        self.assertLess(losses[-1], losses[0])
        self.assertTrue((self.d.run_dir(run) / "results" / "main" / "summary.json").exists())


if __name__ == "__main__":
    main()
