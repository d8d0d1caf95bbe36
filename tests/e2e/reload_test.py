"""Reloading the configuration of a tpd that works: all or nothing, and what runs keeps what it has."""

import threading
import unittest

from harness import Deployment, main, wait_until

REGISTRY = """\
series:
  cpu:
    gpus_per_node: 0
    nodes: [{nodes}]
    env: {{ROUND: "{round}"}}
profiles:
  cpu: {{series: cpu}}
"""
JOBS = 1000
RELOADS = 1000
SUBMITTERS = 2


def registry(nodes, number):
    names = ", ".join(f"{{name: n{i}, address: 127.0.0.1}}" for i in range(nodes))
    return REGISTRY.format(nodes=names, round=number)


class Case(unittest.TestCase):
    def setUp(self):
        self.tpd = Deployment()
        self.addCleanup(self.tpd.close)
        self.write(registry(4, 0))
        self.tpd.start()

    def write(self, text):
        replacement = self.tpd.config / ".new"
        replacement.write_text(text)
        replacement.rename(self.tpd.config / "registry.yaml")

    def status(self):
        return self.tpd.json("admin", "registry", "status")

    def reload(self, *flags, check=True):
        return self.tpd.tp("admin", "reload", *flags, check=check)

    def log(self, run):
        return self.tpd.tp("logs", run).stdout.decode()


class Reloads(Case):
    def test_a_changed_file_is_taken_without_being_asked(self):
        self.write(registry(2, 1))
        wait_until(lambda: self.status()["version"] == 2, what="the watcher")
        self.assertFalse(self.status()["differs_on_disk"])

    def test_a_bad_file_changes_nothing_and_shows(self):
        self.write("series: {a: {gpus_pre_node: 1}}\n")
        refused = self.reload(check=False)
        self.assertEqual(refused.returncode, 9)
        self.assertIn(b"registry.yaml:1:14: unknown key 'gpus_pre_node'", refused.stderr)
        status = self.status()
        self.assertEqual(status["version"], 1)
        self.assertTrue(status["differs_on_disk"])
        self.assertIn("registry.yaml:1:14", "\n".join(status["last_fault"]["problems"]))
        self.assertEqual(self.reload("--dry-run", check=False).returncode, 9)
        self.assertEqual(self.tpd.wait(self.tpd.submit("true")), 0)
        self.write(registry(4, 0))
        self.reload()
        self.assertIsNone(self.status()["last_fault"])

    def test_what_no_longer_fits_is_held_and_what_runs_goes_on(self):
        running = [self.tpd.submit("sleep", "600") for _ in range(4)]
        wait_until(lambda: all(self.tpd.step(run)["state"] == "RUNNING" for run in running), what="RUNNING")
        waiting = self.tpd.submit("true", flags=("--profile", "cpu:3"))
        settings = self.tpd.config / "tpd.yaml"
        settings.write_text(settings.read_text().replace("heartbeat: 1s", "heartbeat: 2s"))
        self.write(registry(2, 0))
        self.reload()
        self.assertEqual(self.status()["restart_keys"], ["jobs.heartbeat"])
        wait_until(lambda: "HELD" in [gate["gate"] for gate in self.tpd.step(waiting)["gates"]], what="HELD")
        self.assertEqual([self.tpd.step(run)["state"] for run in running], ["RUNNING"] * 4)

    def test_a_reload_counts_for_new_attempts_only(self):
        go = self.tpd.root / "go"
        script = f"until [ -e {go} ]; do sleep 0.05; done; echo round $ROUND"
        running = self.tpd.submit("sh", "-c", script)
        wait_until(lambda: self.tpd.step(running)["state"] == "RUNNING", what="RUNNING")
        self.write(registry(4, 7))
        self.reload()
        after = self.tpd.submit("sh", "-c", "echo round $ROUND")
        self.assertEqual(self.tpd.wait(after), 0)
        go.touch()
        self.assertEqual(self.tpd.wait(running), 0)
        self.assertEqual((self.log(running), self.log(after)), ("round 0\n", "round 7\n"))

    def test_a_dry_run_of_a_submission_names_the_origin_of_each_value(self):
        (self.tpd.work / "tp.yaml").write_text(
            "name: planned\ncommand: 'echo $MINE $ROUND'\nenv: {ROUND: f, MINE: f}\nlabels: {team: nlp}\n")
        [step] = self.tpd.json("submit", "--dry-run", "--env", "FLAG=x")["plan"]
        self.assertEqual((step["executor"], step["backend"]), ("cpu/default", "local"))
        [pool] = step["pools"]
        origins = {v["name"]: (v["value"], v["origin"]) for v in pool["environment"]}
        self.assertEqual(origins, {"ROUND": ("0", "SERIES"), "MINE": ("f", "PROJECT_FILE"),
                                   "FLAG": ("x", "COMMAND_LINE")})
        self.assertEqual([rank["node"] for rank in pool["ranks"]], ["n0"])
        run = self.tpd.tp("submit").stdout.decode().strip()
        self.assertTrue(run.startswith("planned-"))
        self.assertEqual(self.tpd.wait(run), 0)
        self.assertEqual(self.log(run), "f 0\n")
        self.assertEqual(self.tpd.show(run)["labels"], {"team": "nlp"})


class ReloadsUnderLoad(Case):
    def test_a_thousand_reloads_while_a_thousand_jobs_run(self):
        runs = []

        def submit():
            runs.extend(self.tpd.submit("true", flags=("--quiet",)) for _ in range(JOBS // SUBMITTERS))

        submitters = [threading.Thread(target=submit) for _ in range(SUBMITTERS)]
        for thread in submitters:
            thread.start()
        good = 0
        for number in range(1, RELOADS + 1):
            bad = number % 5 == 0
            self.write("series: [\n" if bad else registry(4 + number % 3, number))
            self.assertEqual(self.reload("-q", check=False).returncode, 9 if bad else 0, number)
            good += not bad
        for thread in submitters:
            thread.join()
        self.assertEqual(len(set(runs)), JOBS)
        for run in runs:
            self.assertEqual(self.tpd.wait(run, timeout_s=600), 0, run)
        # The watcher may have been quicker than a reload, never twice for one file.
        self.assertEqual(self.status()["version"], 1 + good)


if __name__ == "__main__":
    main()
