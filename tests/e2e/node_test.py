"""Jobs on real sshd hosts through tpd and tp: two machines, one that is cut off, one that is declared dead; the same
where they share no storage."""

import json
import os
import re
import shutil
import subprocess
import time
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
    storage = "shared"

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
  node: {{user: root, identity_file: {directory}/client_key, known_hosts: {directory}/known_hosts,
         storage: {cls.storage}}}
""")
        if cls.storage == "copied":
            cls.part_storage()
        cls.d.start()

    @classmethod
    def part_storage(cls):
        """Each host has a directory of its own where tpd has its storage."""
        root = cls.d.storage()
        root.mkdir(parents=True)
        for host in (1, 2):
            cls.hosts("exec", host, "/bin/sh", "-c", f"mkdir -p /srv/runs && mount --bind /srv/runs {root}")
            cls.addClassCleanup(cls.hosts, "exec", host, "/bin/umount", "-l", root)

    def on_host(self, host, path):
        """Where a path beneath the storage is on a host of its own."""
        return Path(f"/tmp/tp-hosts-{HOSTS_ID}/hosts/{host}/local/runs") / path.relative_to(self.d.storage())

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


class Troubles(NodesTest):
    """What happens to machines while both run a job of 16 cards: nothing of it twice, and billed by its records."""

    def start_job(self, length_s):
        run = self.d.submit("sh", "-c", f'echo "rank $TP_NODE_RANK began"; sleep {length_s}; echo through',
                            flags=["--profile", "rack:16"])
        wait_until(lambda: self.d.step(run)["state"] == "RUNNING", what="the job to run")
        return run

    def records(self, run, kind):
        """Of both ranks of the attempt that ran: a launch before it may have been refused."""
        [ran] = [one["number"] for one in self.d.step(run)["past_attempts"] if one["metered_ms"]]
        return [self.d.record(run, f"0-{rank}.{kind}", attempt=ran) for rank in (0, 1)]

    def assert_kept(self, run, length_s):
        """RUNNING in every look, with node2 named in most."""
        named, looks, end = 0, 0, time.monotonic() + length_s
        while time.monotonic() < end:
            step = self.d.step(run)
            self.assertEqual(step["state"], "RUNNING", step)
            named += "node2" in step["state_text"]
            looks += 1
            time.sleep(1)
        self.assertGreater(named, looks / 2)

    def assert_ran_once(self, run):
        logs = [self.d.tp("logs", run, "--rank", rank).stdout.decode() for rank in (0, 1)]
        self.assertEqual([log.count(f"rank {rank} began") for rank, log in enumerate(logs)], [1, 1], logs)

    def assert_billed_by_records(self, run):
        starts = [int(record["started_unix_us"]) for record in self.records(run, "started")]
        ends = [int(record["ended_unix_us"]) for record in self.records(run, "exit")]
        [interval] = [one for one in self.d.json("usage", "--audit")["intervals"] if one["run"] == run]
        self.assertAlmostEqual(interval["gpu_ms"] / 16, (max(ends) - max(starts)) / 1000, delta=50)

    def test_a_machine_cut_off_for_a_minute(self):
        run = self.start_job(75)
        self.hosts("cut", 2, "blackhole")
        try:
            self.assert_kept(run, 60)
        finally:
            self.hosts("mend", 2)
        self.assert_succeeded(run)
        self.assert_ran_once(run)
        self.assert_billed_by_records(run)

    def test_a_machine_that_hangs(self):
        run = self.start_job(40)
        self.hosts("freeze", 2)
        try:
            self.assert_kept(run, 30)
        finally:
            self.hosts("thaw", 2)
        self.assert_succeeded(run)
        self.assert_ran_once(run)
        self.assert_billed_by_records(run)

    def test_a_machine_that_restarts(self):
        run = self.start_job(600)
        self.hosts("kill", 2)
        try:
            self.assert_kept(run, 10)
        finally:
            self.hosts("start", 2)
        self.assertEqual(self.d.wait(run), 1)
        step = self.d.step(run)
        self.assertIn(step["failure"]["kind"], ("lost", "node_lost"), step)
        self.assertIn("rank 0-1", step["failure"]["sentence"], step)
        self.assert_ran_once(run)
        self.assertEqual(self.records(run, "exit")[0]["signalled_by"], "tpd")
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


class Copied(NodesTest):
    storage = "copied"

    def logs(self, run, rank, *flags):
        return self.d.tp("logs", run, "--rank", rank, *flags).stdout.decode()

    def await_text(self, run, words, timeout_s=60):
        wait_until(lambda: words in str(self.d.step(run)), timeout_s, f"'{words}' to show")

    def test_output_results_and_logs_of_all_ranks_come_back(self):
        (self.d.work / "input").write_text("as submitted\n")
        script = """cat input; cd "$TP_OUTPUT_DIR"; echo "of rank $TP_NODE_RANK" >same; mkdir -p deep
            echo "$TP_NODE_RANK" >"deep/it's $TP_NODE_RANK"; ln -s same "link-$TP_NODE_RANK"; chmod 0 deep/it*
            echo result >"$TP_RESULTS_DIR/result-$TP_NODE_RANK"; echo '{"step": 1, "loss": 0.5}' >>"$TP_METRICS_FILE"
            i=0; while [ $i -lt 20000 ]; do echo "line $i of rank $TP_NODE_RANK"; i=$((i + 1)); done"""
        run = self.d.submit("sh", "-c", script, flags=["--profile", "rack:16"])
        self.assert_succeeded(run)
        output = self.d.run_dir(run) / "output"
        self.assertEqual((output / "same").read_text(), "of rank 0\n")
        self.assertEqual((output / ".rank-0-1" / "same").read_text(), "of rank 1\n")
        self.assertEqual([p.name for p in (output / ".rank-0-1").iterdir()], ["same"])
        for rank in (0, 1):
            self.assertEqual((output / "deep" / f"it's {rank}").read_text(), f"{rank}\n")
            self.assertEqual(os.readlink(output / f"link-{rank}"), "same")
            self.assertEqual((self.d.run_dir(run) / "results" / "main" / f"result-{rank}").read_text(), "result\n")
            expected = "as submitted\n" + "".join(f"line {i} of rank {rank}\n" for i in range(20000))
            self.assertEqual(self.logs(run, rank), expected)
        self.assertIn("0.5", self.d.tp("metrics", run, "-o", "json").stdout.decode())
        for host in (1, 2):
            wait_until(lambda host=host: not self.on_host(host, self.d.run_dir(run)).exists(), 60, "the host to be clean")

    def test_logs_are_followed_while_it_runs(self):
        run = self.d.submit("sh", "-c", "echo first; while [ ! -e \"$TP_PAUSE_FILE\" ]; do sleep 0.2; done; echo last",
                            flags=["--profile", "rack:8"])
        wait_until(lambda: "first" in self.d.tp("logs", run, check=False).stdout.decode(), 60, "the log to come")
        self.assertEqual(self.d.step(run)["state"], "RUNNING")
        self.d.tp("pause", run)
        wait_until(lambda: self.d.step(run)["state"] == "PAUSED", 60, "the pause")
        self.assertIn("last", self.logs(run, "0-0"))
        self.d.tp("stop", run)

    def test_a_resumed_job_goes_on_from_its_output_on_another_machine(self):
        script = """n=$(cat "$TP_OUTPUT_DIR/lives" 2>/dev/null || echo 0); n=$((n + 1)); echo "life $n on $(hostname)"
            echo $n >"$TP_OUTPUT_DIR/lives"; [ $n = 1 ] || exit 0
            while [ ! -e "$TP_PAUSE_FILE" ]; do sleep 0.1; done"""
        run = self.d.submit("sh", "-c", script, flags=["--profile", "rack:8"])
        wait_until(lambda: "life 1" in self.d.tp("logs", run, check=False).stdout.decode(), 60, "its first life")
        host = re.search(r"on node(\d)", self.logs(run, "0-0"))[1]
        self.d.tp("pause", run)
        wait_until(lambda: self.d.step(run)["state"] == "PAUSED", 60, "the pause")
        self.assertEqual((self.d.run_dir(run) / "output" / "lives").read_text(), "1\n")
        self.d.tp("admin", "node", "drain", f"node{host}", "--reason", "test")
        try:
            self.d.tp("resume", run)
            self.assert_succeeded(run)
        finally:
            self.d.tp("admin", "node", "undrain", f"node{host}")
        self.assertEqual((self.d.run_dir(run) / "output" / "lives").read_text(), "2\n")
        self.assertIn(f"life 2 on node{3 - int(host)}", self.logs(run, "0-0", "--attempt", 2))

    def test_a_job_whose_files_are_being_copied_is_stopped_at_once(self):
        with open(self.d.work / "large", "wb") as large:
            for _ in range(400):
                large.write(os.urandom(1 << 20))
        try:
            run = self.d.submit("sleep", "600", flags=["--profile", "rack:8"])
        finally:
            (self.d.work / "large").unlink()
        self.await_text(run, "copies the snapshot to node")
        self.assertEqual(self.d.step(run)["state"], "PENDING")
        self.d.tp("stop", run)
        self.assertEqual(self.d.wait(run, timeout_s=60), 6)
        self.assertFalse(self.d.attempt_dir(run, 2).exists())

    def test_a_tpd_killed_while_it_copies_goes_on_with_it(self):
        with open(self.d.work / "large", "wb") as large:
            for _ in range(200):
                large.write(os.urandom(1 << 20))
        try:
            run = self.d.submit("sh", "-c", 'for i in 1 2; do cat large; done >"$TP_OUTPUT_DIR/twice"; sha256sum large',
                                flags=["--profile", "rack:8"])
            self.await_text(run, "copies the snapshot to node")
            self.d.kill()
            self.d.start()
            self.await_text(run, "copies output from node", 120)
            self.assertIn("RUNNING (ending", self.d.step(run)["state_text"])
            self.d.kill()
            self.d.start()
            self.assert_succeeded(run)
            self.assertFalse(self.d.attempt_dir(run, 2).exists())
            large = (self.d.work / "large").read_bytes()
            self.assertTrue((self.d.run_dir(run) / "output" / "twice").read_bytes() == large + large)
        finally:
            (self.d.work / "large").unlink()


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


class ExampleCopied(Example):
    storage = "copied"


if __name__ == "__main__":
    main()
