"""What the command line does to runs, with a real tpd and real jobs."""

import json
import subprocess

from harness import BIN, DeploymentTest, main, wait_until


class Changes(DeploymentTest):
    policy = {"stop_grace": "1s", "pause_grace": "1s"}

    def test_rm_leaves_a_tombstone_and_no_files(self):
        run = self.d.submit("sh", "-c", "echo result >$TP_RESULTS_DIR/r; mkdir -p deep/er; ln -s /etc deep/etc")
        self.assertEqual(self.d.wait(run), 0)
        directory = self.d.run_dir(run)
        self.assertTrue(directory.exists())
        self.assertEqual(self.d.tp("rm", run).stdout.decode().strip(), run)
        wait_until(lambda: not directory.exists(), what="the run's directory to go")
        self.assertEqual(self.d.json("ls")["runs"], [])
        self.assertEqual([r["id"] for r in self.d.json("ls", "--removed")["runs"]], [run])
        shown = self.d.show(run)
        self.assertIsNotNone(shown["removed_at"])
        self.assertEqual(shown["state"], "SUCCEEDED")
        self.assertIn("removed", self.d.tp("show", run).stdout.decode())
        for command in ("logs", "results", "metrics", "retry"):
            self.assertEqual(self.d.tp(command, run, check=False).returncode, 9, command)
        self.assertIn("removed", [e["event"] for e in self.d.json("events", run)["events"]])
        self.d.tp("rm", run)  # what is so already is OK

    def test_rm_of_what_runs_is_a_conflict(self):
        run = self.d.submit("sleep", "300")
        self.assertEqual(self.d.tp("rm", run, check=False).returncode, 9)
        self.d.tp("stop", run)

    def test_an_owed_removal_outlives_a_crash(self):
        run = self.d.submit("true")
        self.d.wait(run)
        directory = self.d.run_dir(run)
        self.d.tp("rm", run)
        self.d.kill()
        self.d.start()
        wait_until(lambda: not directory.exists(), what="the run's directory to go")

    def test_a_clone_has_the_files_and_the_secrets(self):
        (self.d.work / "data").write_text("from the first\n")
        first = self.d.submit("sh", "-c", "cat data; echo $MY_TOKEN", flags=("--env", "MY_TOKEN=hunter2"))
        self.assertEqual(self.d.wait(first), 0)
        (self.d.work / "data").write_text("changed since\n")
        second = self.d.tp("clone", first, "--label", "kind=clone").stdout.decode().strip()
        self.assertEqual(self.d.wait(second), 0)
        self.assertEqual(self.d.tp("logs", second).stdout, b"from the first\nhunter2\n")
        self.assertEqual(self.d.show(second)["labels"], {"kind": "clone"})

    def test_held_updated_and_released(self):
        run = self.d.submit("sh", "-c", "exit 3")
        self.assertEqual(self.d.wait(run), 1)
        version = self.d.show(run)["version"]
        self.d.tp("update", run, "--label", "a=b", "--priority", "10")
        self.assertEqual(self.d.show(run)["priority"], 10)
        stale = self.d.tp("update", run, "--priority", "20", "--if-version", version, check=False)
        self.assertEqual(stale.returncode, 9, stale.stderr)

        blocker = self.d.submit("sleep", "300", flags=("--profile", "h200:32"))
        waiting = self.d.submit("true", flags=("--profile", "h200:32"))
        self.d.tp("hold", waiting)
        self.d.tp("stop", blocker)
        self.assertEqual(self.d.wait(blocker), 6)
        why = self.d.json("why", waiting)["steps"][0]
        self.assertEqual([gate["gate"] for gate in why["gates"]], ["HELD"])
        self.d.tp("release", waiting)
        self.assertEqual(self.d.wait(waiting), 0)

    def test_bulk_takes_what_matches(self):
        labelled = [self.d.submit("sleep", "300", flags=("--label", "sweep=1")) for _ in range(3)]
        other = self.d.submit("sleep", "300")
        refused = self.d.tp("stop", "--label", "sweep=1", check=False)
        self.assertEqual(refused.returncode, 2, "there is no terminal to ask at")
        stopped = self.d.tp("stop", "--label", "sweep=1", "-y").stdout.decode().split()
        self.assertEqual(sorted(stopped), sorted(labelled))
        for run in labelled:
            self.assertEqual(self.d.wait(run), 6)
        self.assertEqual(self.d.show(other)["state"] in ("STOPPED", "FAILED"), False)
        self.assertEqual(len(self.d.tp("rm", "--label", "sweep=1", "-y").stdout.split()), 3)
        self.d.tp("stop", other)


class Looking(DeploymentTest):
    policy = {"stop_grace": "1s"}

    def test_a_watch_sees_a_run_to_its_end(self):
        run = self.d.submit("sh", "-c", "sleep 1")
        watch = self.d.tp("show", run, "-w", "-o", "json").stdout.decode()
        decoder = json.JSONDecoder()
        states = []
        while watch.strip():
            document, end = decoder.raw_decode(watch.lstrip())
            watch = watch.lstrip()[end:]
            states.append(document["runs"][0]["state"])
        self.assertEqual(states[-1], "SUCCEEDED")

    def test_an_ended_run_tells_its_backend_and_usage_its_id(self):
        run = self.d.submit("sleep", "1", flags=("--profile", "h200:8"))
        self.assertEqual(self.d.wait(run), 0)
        self.assertEqual(self.d.step(run)["backend"], "local")
        self.assertIn(f"\n{run} ", self.d.tp("ls").stdout.decode())
        self.assertEqual([row["key"] for row in self.d.json("usage", "--by", "run")["rows"]], [run])

    def test_results_are_checked_and_go_on(self):
        run = self.d.submit("sh", "-c", "head -c 3000000 /dev/urandom >$TP_RESULTS_DIR/big")
        self.assertEqual(self.d.wait(run), 0)
        path = self.d.json("results", run)["files"][0]["path"]
        whole = (self.d.run_dir(run) / "results" / path).read_bytes()
        self.d.tp("results", "get", run, "--to", "here")
        self.assertEqual((self.d.work / "here" / path).read_bytes(), whole)

    def test_a_mistyped_run_gets_a_suggestion(self):
        run = self.d.submit("true")
        name, _, number = run.rpartition("-")
        for wrong in (name, f"{name}x-{number}"):
            found = self.d.tp("show", wrong, check=False)
            self.assertEqual(found.returncode, 4)
            self.assertIn(run, found.stderr.decode())

    def test_completion_offers_runs(self):
        run = self.d.submit("sleep", "300")
        offered = subprocess.run([BIN / "tp", "__complete", "stop", ""], env=self.d.env, capture_output=True, check=True)
        self.assertIn(run, offered.stdout.decode())
        self.d.tp("stop", run)


if __name__ == "__main__":
    main()
