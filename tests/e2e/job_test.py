"""One job at a time, from submit to its true end."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

from harness import BIN, DeploymentTest, main, process_start_ticks, wait_until

TWO_NODES = ("--profile", "h200:16")


class Ends(DeploymentTest):
    def test_success_is_exit_0(self):
        run = self.d.submit("sh", "-c", "echo hello; echo err >&2")
        self.assertRegex(run, r"^[a-z0-9-]+-1$")
        self.assertEqual(self.d.wait(run), 0)
        self.assert_ended(run, "SUCCEEDED")
        self.assertEqual(self.d.tp("logs", run).stdout, b"hello\nerr\n")

    def test_failure_names_the_code(self):
        run = self.d.submit("sh", "-c", "exit 137")
        self.assertEqual(self.d.wait(run), 1)
        self.assert_ended(run, "FAILED", "user_exit", ["exit 137"])

    def test_what_its_log_says_is_part_of_the_reason(self):
        run = self.d.submit("sh", "-c", "echo 'RuntimeError: CUDA out of memory. Tried to allocate 2 GiB' >&2; exit 1")
        self.assertEqual(self.d.wait(run), 1)
        self.assert_ended(run, "FAILED", "user_oom", ["exit 1", "its log says CUDA out of memory"])

    def test_sigkill_on_the_job_names_the_signal(self):
        run = self.d.submit("sh", "-c", "kill -9 $$")
        self.assertEqual(self.d.wait(run), 1)
        self.assert_ended(run, "FAILED", "user_exit", ["SIGKILL"])

    def test_missing_command_says_so(self):
        run = self.d.submit("no-such-command")
        self.assertEqual(self.d.wait(run), 1)
        self.assert_ended(run, "FAILED", "user_exit", ["could not start", "ENOENT"])

    def test_one_failing_rank_stops_the_other_and_is_named(self):
        run = self.d.submit("sh", "-c", "if [ $TP_NODE_RANK = 1 ]; then sleep 1; exit 3; fi; sleep 300", flags=TWO_NODES)
        self.assertEqual(self.d.wait(run), 1)
        self.assert_ended(run, "FAILED", "user_exit", ["rank 0-1", "exit 3"])

    def test_term_from_outside_is_evicted_never_succeeded(self):
        run = self.d.submit("sh", "-c", "trap 'exit 0' TERM; touch up; while :; do sleep 0.05; done")
        self.d.tp("wait", run, "--until", "RUNNING")
        wait_until(lambda: (self.d.attempt_dir(run) / "work" / "up").exists())
        os.kill(int(self.d.record(run, "0-0.started")["runner_pid"]), signal.SIGTERM)
        self.assertEqual(self.d.wait(run), 1)
        self.assert_ended(run, "FAILED", "evicted", ["SIGTERM from outside"])

    def test_runner_killed_is_lost_and_its_tree_is_ended(self):
        run = self.d.submit("sh", "-c", "setsid sleep 300 & echo $! >child; wait")
        self.d.tp("wait", run, "--until", "RUNNING")
        child_file = self.d.attempt_dir(run) / "work" / "child"
        child = int(wait_until(lambda: child_file.exists() and child_file.read_text().strip()))
        os.kill(int(self.d.record(run, "0-0.started")["runner_pid"]), signal.SIGKILL)
        self.assertEqual(self.d.wait(run), 1)
        self.assert_ended(run, "FAILED", "lost", ["no end record"])
        self.assertIsNone(process_start_ticks(child))

    def test_daemonized_grandchild_is_ended_with_the_job(self):
        run = self.d.submit("sh", "-c", "(setsid sleep 300 >/dev/null 2>&1 & echo $! >child); exit 0")
        self.assertEqual(self.d.wait(run), 0)
        child = int((self.d.attempt_dir(run) / "work" / "child").read_text())
        self.assertIsNone(process_start_ticks(child))


class Steering(DeploymentTest):
    policy = {"stop_grace": "1s", "pause_grace": "1s"}

    def running(self, *command, flags=()):
        run = self.d.submit(*command, flags=flags)
        self.d.tp("wait", run, "--until", "RUNNING")
        return run

    def test_stop_ends_in_stopped(self):
        run = self.running("sleep", "300", flags=TWO_NODES)
        self.d.tp("stop", run)
        self.assertEqual(self.d.wait(run), 6)
        self.d.tp("stop", run)  # repeating the present intent is OK

    def test_stop_of_a_job_that_ignores_term(self):
        run = self.running("sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done")
        wait_until(lambda: b"up" in self.d.tp("logs", run).stdout)
        self.d.tp("stop", run)
        self.assertEqual(self.d.wait(run), 6)

    def test_stop_of_what_is_over_is_a_conflict(self):
        run = self.d.submit("true")
        self.d.wait(run)
        self.assertEqual(self.d.tp("stop", run, check=False).returncode, 9)

    def test_pause_and_resume_keep_run_and_output(self):
        script = ("n=$(cat $TP_OUTPUT_DIR/n 2>/dev/null || echo 0); echo $((n + 1)) >$TP_OUTPUT_DIR/n; "
                  "[ $n = 1 ] && exit 0; trap 'exit 0' USR1; while :; do sleep 0.05; done")
        run = self.running("sh", "-c", script)
        wait_until(lambda: (self.d.run_dir(run) / "output" / "n").exists())
        self.d.tp("pause", run)
        self.d.tp("wait", run, "--until", "PAUSED")
        self.d.tp("resume", run)
        self.assertEqual(self.d.wait(run), 0)
        self.assertEqual((self.d.run_dir(run) / "output" / "n").read_text(), "2\n")
        self.assertEqual(self.d.step(run)["retry_count"], 0)

    def test_retry_is_the_same_run_with_one_retry_more(self):
        run = self.d.submit("sh", "-c", "[ -e $TP_OUTPUT_DIR/x ] || { touch $TP_OUTPUT_DIR/x; exit 4; }")
        self.assertEqual(self.d.wait(run), 1)
        self.d.tp("retry", run)
        self.assertEqual(self.d.wait(run), 0)
        self.assertEqual(self.d.step(run)["retry_count"], 1)

    def test_wait_times_out_with_7(self):
        run = self.running("sleep", "300")
        self.assertEqual(self.d.wait(run, "--timeout", "1s"), 7)
        self.d.tp("stop", run)

    def test_jobs_outlive_tpd(self):
        run = self.running("sh", "-c", "sleep 2; echo done")
        pid = self.d.record(run, "0-0.started")["pid"]
        ticks = process_start_ticks(pid)
        self.d.kill(signal.SIGTERM)
        self.assertEqual(process_start_ticks(pid), ticks)
        self.d.start()
        self.assertEqual(self.d.wait(run), 0)
        self.assertEqual(self.d.tp("logs", run).stdout, b"done\n")


class Resources(DeploymentTest):
    def refused(self, profile, *words):
        result = self.d.submit("true", flags=("--profile", profile), check=False)
        self.assertEqual(result.returncode, 2, result)
        for word in words:
            self.assertIn(word, result.stderr.decode())

    def test_refusals_name_what_would_do(self):
        self.refused("h200:12", "8", "16")
        self.refused("h20:16", "h200")
        self.refused("h200:9223372036854775807", "9223372036854775807")
        self.refused("h200:0", "h200:0")
        self.assertEqual(self.d.json("ls")["runs"], [])

    def test_jobs_wait_for_cards_in_order_and_say_why(self):
        big = self.d.submit("sleep", "300", flags=("--profile", "h200:32"))
        self.d.tp("wait", big, "--until", "RUNNING")
        waiting = self.d.submit("true", flags=("--profile", "h200:8"))
        why = self.d.tp("why", waiting).stdout.decode()
        self.assertIn("CAPACITY", why)
        self.assertIn("0 of 32 cards are free", why)
        self.d.tp("stop", big)
        self.assertEqual(self.d.wait(waiting), 0)

    def test_environment_of_two_nodes(self):
        run = self.d.submit("sh", "-c", "env | grep -E '^(TP_|PET_|MASTER_|CUDA_)' | sort", flags=TWO_NODES)
        self.assertEqual(self.d.wait(run), 0)
        env = dict(line.split("=", 1) for line in self.d.tp("logs", run, "--rank", "0-1").stdout.decode().splitlines())
        for name, value in {"TP_NNODES": "2", "TP_NODE_RANK": "1", "TP_GPUS_PER_NODE": "8", "TP_WORLD_SIZE": "16",
                            "PET_NPROC_PER_NODE": "8", "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7",
                            "TP_RUN_ID": run, "MASTER_ADDR": "127.0.0.1"}.items():
            self.assertEqual(env[name], value, name)


class Cards(DeploymentTest):
    """A database in which two attempts hold the same cards, which tpd itself never writes."""

    policy = {"stop_grace": "1s"}

    def test_cards_that_two_hold_are_named_and_stay_held_until_both_have_ended(self):
        runs = [self.d.submit("sleep", "300", flags=("--profile", "h200:4")) for _ in range(2)]
        for run in runs:
            self.d.tp("wait", run, "--until", "RUNNING")
        self.d.kill(signal.SIGTERM)
        with closing(sqlite3.connect(self.d.data / "tpd.db")) as database, database:
            database.execute("UPDATE attempt SET placement = (SELECT placement FROM attempt WHERE run = 1) WHERE run = 2")
        self.d.start()
        words = "both hold cards 0, 1, 2, 3 of node"
        self.assertIn(words, self.d.log_tail())
        self.assertIn(words, self.d.tp("admin", "registry", "status").stdout.decode())
        self.d.tp("stop", runs[0])
        self.assertEqual(self.d.wait(runs[0]), 6)
        self.assertNotIn(words, self.d.tp("admin", "registry", "status").stdout.decode())
        # A job that needs all there is waits for the other one too.
        whole = self.d.submit("true", flags=("--profile", "h200:32"))
        self.assertEqual(self.d.step(whole)["state"], "QUEUED")
        self.d.tp("stop", runs[1])
        self.assertEqual(self.d.wait(runs[1]), 6)
        self.assertEqual(self.d.wait(whole), 0)


class Output(DeploymentTest):
    SCRIPT = """
import sys
out = sys.stdout.buffer
out.write(b"x" * 10_000_000)
for i in range(2000):
    out.write(b"\\rstep %d" % i)
out.write(b"\\nthe end\\n")
out.flush()
"""

    def test_every_byte_in_order_and_follow_ends_by_itself(self):
        (self.d.work / "job.py").write_text(self.SCRIPT)
        expected = subprocess.run([sys.executable, self.d.work / "job.py"], capture_output=True, check=True).stdout
        run = self.d.submit("/usr/bin/python3", "job.py")
        followed = self.d.tp("logs", "-f", run, timeout_s=60).stdout
        self.assertEqual(len(followed), len(expected))
        self.assertEqual(followed, expected)
        self.assertEqual(self.d.tp("logs", run).stdout, expected)

    def test_results_and_metrics(self):
        run = self.d.submit("sh", "-c", 'mkdir -p $TP_RESULTS_DIR/deep && echo 42 >$TP_RESULTS_DIR/deep/answer && '
                            'echo \'{"step": 1, "loss": 2.5}\' >>$TP_METRICS_FILE')
        self.assertEqual(self.d.wait(run), 0)
        self.assertIn("deep/answer", self.d.tp("results", "ls", run).stdout.decode())
        self.assertIn("2.5", self.d.tp("metrics", run).stdout.decode())
        target = self.d.root / "fetched"
        self.d.tp("results", "get", run, "--to", target)
        self.assertEqual(next(target.rglob("answer")).read_text(), "42\n")

    def test_snapshot_is_what_was_submitted(self):
        (self.d.work / "tool.sh").write_text("#!/bin/sh\ncat data\n")
        (self.d.work / "tool.sh").chmod(0o755)
        (self.d.work / "data").write_text("one\n")
        (self.d.work / "link").symlink_to("data")
        run = self.d.submit("sh", "-c", "sleep 0.5; ./tool.sh; cat link; pwd")
        (self.d.work / "data").write_text("two\n")
        self.assertEqual(self.d.wait(run), 0)
        lines = self.d.tp("logs", run).stdout.decode().splitlines()
        self.assertEqual(lines[:2], ["one", "one"])
        self.assertTrue(lines[2].endswith("/work"))


class Metering(DeploymentTest):
    WITNESS = """
import os, time
start = time.clock_gettime(time.CLOCK_BOOTTIME)
time.sleep(2)
print(start, time.clock_gettime(time.CLOCK_BOOTTIME), flush=True)
os._exit(0)
"""

    def test_gpu_seconds_against_the_jobs_own_clock(self):
        (self.d.work / "witness.py").write_text(self.WITNESS)
        run = self.d.submit("/usr/bin/python3", "-S", "-E", "witness.py", flags=TWO_NODES)
        self.assertEqual(self.d.wait(run), 0)
        stamps = [tuple(map(float, self.d.tp("logs", run, "--rank", rank).stdout.split())) for rank in ("0-0", "0-1")]
        # The interpreter's own start is between the rank's start and the job's first instruction.
        starts = [int(self.d.record(run, f"0-{rank}.started")["started_boot_us"]) / 1e6 for rank in (0, 1)]
        for (first, _), started in zip(stamps, starts):
            self.assertLess(first - started, 2.0)
        witness_s = max(end for _, end in stamps) - max(starts)
        metered_s = self.d.show(run)["gpu_seconds"]
        self.assertAlmostEqual(metered_s, witness_s * 16, delta=0.05 * 16)
        row = self.d.json("usage", "--by", "run")["rows"][0]
        self.assertEqual(row["gpu_ms"], self.d.show(run)["gpu_ms"])
        self.assertEqual(subprocess.run([BIN / "tpd", "fsck", "--data", self.d.data], capture_output=True).returncode, 0)

    def write_end_record(self, run, after_us):
        """As a runner leaves it whose storage comes back once everybody has given it up."""
        directory = self.d.attempt_dir(run)
        started = self.d.record(run, "0-0.started")
        stamps = {f"ended_{clock}_us": int(started[f"started_{clock}_us"]) + after_us for clock in ("boot", "unix")}
        record = started | stamps | {"exit": "killed", "code": -1, "term_signal": 9, "signalled": "no", "signalled_by": "",
                                     "signals": "", "log_bytes": 0}
        text = "".join(["tp-record 1\n", *(f"{name}={value}\n" for name, value in record.items()), "end\n"])
        (directory / ".late").write_text(text)
        (directory / ".late").rename(directory / "0-0.exit")

    def test_a_record_that_comes_late_corrects_the_bill(self):
        run = self.d.submit("sleep", "300", flags=("--profile", "h200:4"))
        self.d.tp("wait", run, "--until", "RUNNING")
        os.kill(int(self.d.record(run, "0-0.started")["runner_pid"]), signal.SIGKILL)
        self.assertEqual(self.d.wait(run), 1)
        [billed] = self.d.json("usage", "--audit")["intervals"]
        self.assertTrue(billed["flagged"], billed)
        self.write_end_record(run, 250_000)
        self.d.kill(signal.SIGKILL)
        self.d.start()  # it asks at once
        _, delta = wait_until(lambda: (rows := self.d.json("usage", "--audit")["intervals"]) and len(rows) == 2 and rows)
        self.assertTrue(delta["delta"], delta)
        self.assertFalse(delta["flagged"], delta)
        self.assertEqual(self.d.json("usage", "--by", "run")["rows"][0]["gpu_ms"], 4 * 250)
        self.assertEqual(subprocess.run([BIN / "tpd", "fsck", "--data", self.d.data], capture_output=True).returncode, 0)
        with closing(sqlite3.connect(f"file:{self.d.data}/tpd.db?mode=ro", uri=True)) as database:
            self.assertEqual(database.execute("SELECT count(*) FROM correction").fetchone(), (0,))

    def measured(self):
        """Bytes by owner; the empty one is there once a scan was complete."""
        with closing(sqlite3.connect(f"file:{self.d.data}/tpd.db?mode=ro", uri=True)) as database:
            return dict(database.execute("SELECT owner, bytes FROM storage_use"))

    def test_what_owners_store_is_measured(self):
        (self.d.work / "sent").write_bytes(bytes(3 << 20))
        run = self.d.submit("sh", "-c", "dd if=/dev/urandom of=$TP_OUTPUT_DIR/model bs=1M count=5 conv=fsync")
        self.assertEqual(self.d.wait(run), 0)
        owner = self.d.show(run)["owner"]
        self.d.kill(signal.SIGTERM)
        self.d.start()
        # The output, the snapshot, and the copy of it that the attempt worked in.
        wait_until(lambda: self.measured().get(owner, 0) >= 11 << 20 and "" in self.measured(), what="a scan")
        self.assertLess(self.measured()[owner], 12 << 20)


if __name__ == "__main__":
    main()
