"""Pipelines: steps one after another in one run, with a real tpd."""

import json
import shutil
from pathlib import Path

from harness import Deployment, DeploymentTest, main, wait_until

CHARLM = Path(__file__).resolve().parents[2] / "examples" / "charlm"
REGISTRY = """\
series:
  g:
    gpus_per_node: 8
    virtual_cards: true
    nodes: [{name: n1, address: 127.0.0.1}, {name: n2, address: 127.0.0.1}]
  cpu:
    gpus_per_node: 0
    nodes: [{name: c1, address: 127.0.0.1}, {name: c2, address: 127.0.0.1}]
profiles:
  g: {series: g, default_shape: 8}
  cpu: {series: cpu, default_shape: 1}
recipes:
  count: {command: 'echo counted > "$TP_RESULTS_DIR/count.txt"; ls "$TP_OUTPUT_DIR" | wc -l', env: {KIND: recipe}}
"""
EXIT_PARTIAL = 8
EXIT_FAILED = 1
EXIT_STOPPED = 6


class Case(DeploymentTest):
    def setUp(self):
        self.d = Deployment()
        self.addCleanup(self.d.close)
        (self.d.config / "registry.yaml").write_text(REGISTRY)
        self.d.start()

    def project(self, text):
        (self.d.work / "tp.yaml").write_text(text)

    def states(self, run):
        return {step["spec"]["name"]: step["state"] for step in self.d.show(run)["steps"]}

    def run_then(self, command, *names, flags=()):
        then = [flag for name in names for flag in ("--then", name)]
        return self.d.submit("sh", "-c", command, flags=(*then, *flags))


class Pipelines(Case):
    def test_steps_share_the_run_and_its_output(self):
        self.project("steps:\n  export: {command: 'cat \"$TP_OUTPUT_DIR/model\"; echo \"$TP_STEP\" >> \"$TP_OUTPUT_DIR/model\"'}\n")
        run = self.run_then('echo trained > "$TP_OUTPUT_DIR/model"', "export", "count")
        self.assertEqual(self.d.wait(run), 0)
        self.assertEqual(self.states(run), {"main": "SUCCEEDED", "export": "SUCCEEDED", "count": "SUCCEEDED"})
        self.assertEqual((self.d.run_dir(run) / "output" / "model").read_text(), "trained\nexport\n")
        log = self.d.tp("logs", run).stdout.decode()
        self.assertEqual(log, "==> step 2 export <==\ntrained\n\n==> step 3 count <==\n1\n")
        names = [result["path"] for result in self.d.json("results", "ls", run)["files"]]
        self.assertIn("count/count.txt", names)
        self.assertEqual(len(self.d.json("ls")["runs"]), 1)

    def test_the_step_after_waits_and_says_for_what(self):
        run = self.run_then("sleep 600", "count")
        wait_until(lambda: self.states(run)["main"] == "RUNNING")
        gates = self.d.show(run)["steps"][1]["gates"]
        self.assertEqual([gate["gate"] for gate in gates], ["DEPENDENCY"])
        self.assertEqual(gates[0]["sentence"], "waits for step 1 (main), which is RUNNING")
        page = self.d.tp("show", run).stdout.decode()
        self.assertIn("main      RUNNING", page)
        self.assertIn("└─ count  QUEUED", page)
        self.assertEqual(self.d.show(run)["state"], "RUNNING")
        self.d.tp("stop", run)
        self.assertEqual(self.d.wait(run), EXIT_STOPPED)
        self.assertEqual(self.states(run), {"main": "STOPPED", "count": "STOPPED"})

    def test_what_failed_is_run_again_and_nothing_else(self):
        self.project("steps:\n  eval: {command: 'echo eval; test -e \"$TP_OUTPUT_DIR/ready\"'}\n")
        run = self.run_then('echo main >> "$TP_OUTPUT_DIR/log"', "count", "eval")
        self.assertEqual(self.d.wait(run), EXIT_PARTIAL)
        self.assertEqual(self.d.show(run)["state"], "PARTIAL")
        (self.d.run_dir(run) / "output" / "ready").write_text("")
        self.d.tp("retry", run)
        self.assertEqual(self.d.wait(run), 0)
        shown = self.d.show(run)
        self.assertEqual([step["retry_count"] for step in shown["steps"]], [0, 0, 1])
        self.assertEqual((self.d.run_dir(run) / "output" / "log").read_text(), "main\n")

    def test_what_can_never_run_stops_and_a_cleanup_step_runs(self):
        self.project("steps:\n"
                     "  export: {command: 'true'}\n"
                     "  tidy: {command: 'echo tidied', after: {step: main, when: failure}}\n"
                     "  always: {command: 'echo always', after: {step: export, when: always}}\n")
        run = self.run_then("exit 3", "export", "tidy", "always")
        self.assertEqual(self.d.wait(run), EXIT_FAILED)
        self.assertEqual(self.states(run), {"main": "FAILED", "export": "STOPPED", "tidy": "SUCCEEDED", "always": "SUCCEEDED"})
        step = self.d.show(run)["steps"][1]
        self.assertEqual(step["failure"]["kind"], "dependency")
        self.assertIn("step main ended FAILED, so this step can never run", step["reason"])

    def test_a_paused_run_goes_on_with_its_next_step(self):
        run = self.run_then('trap "exit 0" TERM; while ! test -e "$TP_OUTPUT_DIR/go"; do sleep 0.05; done', "count")
        wait_until(lambda: self.states(run)["main"] == "RUNNING")
        self.d.tp("pause", run)
        wait_until(lambda: self.d.show(run)["state"] == "PAUSED", what="PAUSED")
        self.assertEqual(self.states(run), {"main": "PAUSED", "count": "PAUSED"})
        (self.d.run_dir(run) / "output" / "go").write_text("")
        self.d.tp("resume", run)
        self.assertEqual(self.d.wait(run), 0)
        self.assertEqual(self.states(run), {"main": "SUCCEEDED", "count": "SUCCEEDED"})

    def test_a_recipe_that_is_not_there_is_named_before_anything_is_sent(self):
        refused = self.d.submit("true", flags=("--then", "conut"), check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("no recipe is called 'conut': did you mean count?", refused.stderr.decode())
        self.assertEqual(self.d.json("ls")["runs"], [])

    def test_tpd_may_die_between_steps(self):
        run = self.run_then('while ! test -e "$TP_OUTPUT_DIR/go"; do sleep 0.05; done', "count")
        wait_until(lambda: self.states(run)["main"] == "RUNNING")
        directory = self.d.run_dir(run)
        self.d.kill()
        (directory / "output" / "go").write_text("")
        self.d.start()
        self.assertEqual(self.d.wait(run), 0)
        self.assertEqual(self.states(run), {"main": "SUCCEEDED", "count": "SUCCEEDED"})


class Between(Case):
    """Runs that come after other runs, and arrays."""

    def test_a_run_waits_for_another_and_says_for_which(self):
        first = self.d.submit("sh", "-c", 'while ! test -e "$TP_OUTPUT_DIR/go"; do sleep 0.05; done')
        second = self.d.submit("true", flags=("--after", first))
        never = self.d.submit("true", flags=("--after", f"{first}:failure"))
        wait_until(lambda: self.d.show(first)["state"] == "RUNNING")
        self.assertEqual(self.d.show(second)["reason"], f"DEPENDENCY: waits for {first} to succeed")
        self.d.kill()
        self.d.start()
        (self.d.run_dir(first) / "output" / "go").write_text("")
        self.assertEqual(self.d.wait(second), 0)
        self.assertEqual(self.d.wait(never), EXIT_STOPPED)
        self.assertIn(f"{first} ended SUCCEEDED", self.d.show(never)["reason"])
        refused = self.d.submit("true", flags=("--after", f"{never}"), check=False)
        self.assertEqual(refused.returncode, 9)
        self.assertIn("can never run", refused.stderr.decode())

    def test_an_array_of_a_thousand_never_runs_more_than_its_limit(self):
        script = ('echo "$TP_ARRAY_INDEX + $(date +%s%N)" >> "$TP_OUTPUT_DIR/log"; sleep 0.3; '
                  'echo "$TP_ARRAY_INDEX - $(date +%s%N)" >> "$TP_OUTPUT_DIR/log"')
        run = self.d.submit("sh", "-c", script, flags=("--array", "0-999%16", "--profile", "g:1"))
        self.assertEqual(len(self.d.json("ls")["runs"]), 1)
        self.assertEqual(self.d.wait(run, timeout_s=600), 0)
        shown = self.d.show(run)
        self.assertEqual(shown["array"]["succeeded"], 1000)
        lines = [line.split() for line in (self.d.run_dir(run) / "output" / "log").read_text().splitlines()]
        self.assertEqual(sorted(int(index) for index, kind, _ in lines if kind == "+"), list(range(1000)))
        live = most = 0
        for _, kind, _ in sorted(lines, key=lambda line: int(line[2])):
            live += 1 if kind == "+" else -1
            most = max(most, live)
        print(f"at most {most} tasks at once")
        self.assertLessEqual(most, 16)
        self.assertEqual(shown["state_text"], "SUCCEEDED (1000 succeeded of 1000 tasks)")

    def test_one_command_stops_an_array_and_a_retry_runs_what_did_not_succeed(self):
        script = 'test "$TP_ARRAY_INDEX" -lt 3 || test -e "$TP_OUTPUT_DIR/go" || sleep 600'
        run = self.d.submit("sh", "-c", script, flags=("--array", "0-19%4", "--profile", "g:1"))
        wait_until(lambda: self.d.show(run)["array"]["succeeded"] == 3 and self.d.show(run)["array"]["running"] == 4)
        self.d.tp("stop", run)
        self.assertEqual(self.d.wait(run), EXIT_STOPPED)
        (self.d.run_dir(run) / "output" / "go").write_text("")
        self.d.tp("retry", run)
        self.assertEqual(self.d.wait(run), 0)
        self.assertEqual(sum(step["retry_count"] for step in self.d.show(run)["steps"]), 17)


class Example(Case):
    def test_charlm_is_exported_and_evaluated(self):
        shutil.copytree(CHARLM, self.d.work / "charlm")
        project = self.d.work / "charlm" / "tp.yaml"
        project.write_text(project.read_text().replace(
            "command: python3 eval.py", "command: test -e \"$TP_OUTPUT_DIR/ready\" && /usr/bin/python3 eval.py")
            .replace("command: python3 export.py", "command: /usr/bin/python3 export.py"))
        run = self.d.submit("/usr/bin/python3", "train.py", "--steps", "60", "--hidden", "32",
                            flags=("--profile", "g:16", "--then", "export", "--then", "eval", "--dir", "charlm"))
        self.assertEqual(self.d.wait(run, timeout_s=240), EXIT_PARTIAL)
        self.assertEqual(self.states(run), {"main": "SUCCEEDED", "export": "SUCCEEDED", "eval": "FAILED"})
        (self.d.run_dir(run) / "output" / "ready").write_text("")
        self.d.tp("retry", run)
        self.assertEqual(self.d.wait(run), 0)
        self.assertEqual([step["retry_count"] for step in self.d.show(run)["steps"]], [0, 0, 1])
        self.d.tp("results", "get", run, "--to", "fetched")
        found = {path.name: path for path in (self.d.work / "fetched").rglob("*") if path.is_file()}
        self.assertGreater(found["model.safetensors"].stat().st_size, 10_000)
        perplexity = json.loads(found["perplexity.json"].read_text())
        self.assertEqual(perplexity["step"], 60)
        self.assertTrue(1 < perplexity["perplexity"] < 40, perplexity)
        self.assertIn("summary.json", found)


if __name__ == "__main__":
    main()
