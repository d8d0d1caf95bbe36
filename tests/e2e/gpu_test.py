"""Cards that break, are used by strangers or compute nothing, through tpd and tp, with a nvidia-smi of the test's own."""

import unittest
from pathlib import Path

from harness import Deployment, main, wait_until

REGISTRY = """\
series:
  box:
    gpus_per_node: 2
    executor: gpu/default
    nodes:
      - {name: box-1, address: 127.0.0.1}
profiles:
  box: {series: box, default_shape: 1}
"""

NVIDIA_SMI = """\
#!/bin/sh
case $1 in
--query-gpu=*) cat "{directory}/cards" ;;
--query-compute-apps=*) cat "{directory}/processes" ;;
esac
"""

BUSES = ["00000000:07:00.0", "00000000:65:00.0"]


class Machine:
    """What nvidia-smi says of a machine with two cards."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True)
        tool = self.directory / "nvidia-smi"
        tool.write_text(NVIDIA_SMI.format(directory=self.directory))
        tool.chmod(0o755)
        (self.directory / "dmesg").write_text("#!/bin/sh\n")
        (self.directory / "dmesg").chmod(0o755)
        self.say()

    def write(self, name, lines):
        new = self.directory / f".{name}"
        new.write_text("".join(f"{line}\n" for line in lines))
        new.rename(self.directory / name)

    def say(self, utilization=50, lost=(), used_by=None):
        cards = [f"{i}, {bus}, {utilization}, 0" for i, bus in enumerate(BUSES) if i not in lost]
        cards += [f"Unable to determine the device handle for GPU{BUSES[i]}: GPU is lost." for i in lost]
        self.write("cards", cards)
        self.write("processes", [f"{BUSES[card]}, 4711, /usr/bin/{name}" for card, name in (used_by or {}).items()])


class Cards(unittest.TestCase):
    def setUp(self):
        self.d = Deployment(infrastructure_retries=1)
        self.addCleanup(self.d.close)
        (self.d.config / "registry.yaml").write_text(REGISTRY)
        yaml = self.d.config / "tpd.yaml"
        yaml.write_text(yaml.read_text().replace("min_flip: 0s", "min_flip: 0s\n  idle_after: 1s"))
        self.machine = Machine(self.d.root / "machine")
        self.d.start(PATH=f"{self.machine.directory}:{self.d.env['PATH']}")

    def submit(self, command, cards=1):
        return self.d.submit("sh", "-c", command, flags=["--profile", f"box:{cards}"])

    def running(self, run):
        wait_until(lambda: self.d.step(run)["state"] == "RUNNING", what="the job to run")

    def why(self, run, words):
        wait_until(lambda: words in self.d.tp("why", run).stdout.decode(), 30, f"tp why to say {words}")

    def marks(self):
        return str(self.d.json("admin", "nodes"))

    def fail_with_a_lost_card(self, after_breaking=lambda: None):
        go = self.d.root / "go"
        run = self.submit(f'[ "$TP_ATTEMPT" = 1 ] || exit 0; while [ ! -e {go} ]; do sleep 0.1; done; exit 3')
        self.running(run)
        self.machine.say(lost=[0])
        after_breaking()
        go.touch()
        self.assertEqual(self.d.wait(run), 0, self.d.show(run))
        first = self.d.step(run)["past_attempts"][0]
        self.assertEqual(first["failure"]["kind"], "gpu_lost", first)
        self.assertIn("card 0 of box-1 broke under it", first["failure"]["sentence"])
        self.assertIn("exit 3", first["failure"]["sentence"])
        self.assertIn("GPU is lost", self.marks())

    def test_a_failure_right_after_a_card_was_lost_is_the_cards(self):
        self.fail_with_a_lost_card()

    def test_what_was_found_before_tpd_died_still_names_the_end(self):
        def die_once_it_was_found():
            wait_until(lambda: "GPU is lost" in self.marks(), 30, "the card to be taken out")
            self.d.kill()
            self.machine.say()
            self.d.start(PATH=f"{self.machine.directory}:{self.d.env['PATH']}")
        self.fail_with_a_lost_card(die_once_it_was_found)

    def test_a_job_that_needs_no_broken_card_is_its_own_failure(self):
        run = self.submit("exit 3")
        self.assertEqual(self.d.wait(run), 1)
        self.assertEqual(self.d.step(run)["failure"]["kind"], "user_exit")

    def test_nothing_begins_on_cards_that_others_use(self):
        self.running(self.submit("sleep 600"))
        self.machine.say(used_by={0: "python", 1: "python"})
        run = self.submit("true")
        self.why(run, "process 4711 (python)")
        self.machine.say()
        self.assertEqual(self.d.wait(run), 0, self.d.show(run))

    def test_a_card_that_is_gone_takes_no_job(self):
        self.machine.say(lost=[1])
        run = self.submit("true", cards=2)
        self.why(run, "nvidia-smi does not list it")
        self.assertNotEqual(self.d.step(run)["state"], "RUNNING")
        wait_until(lambda: "does not list it" in self.marks(), 30, "the card to be taken out")
        self.machine.say()
        self.d.tp("admin", "node", "undrain", "box-1", "--card", 1)
        self.assertEqual(self.d.wait(run), 0, self.d.show(run))

    def test_a_job_that_computes_nothing_is_shown(self):
        run = self.submit("sleep 600")
        self.running(run)
        self.machine.say(utilization=0)
        wait_until(lambda: "its card has done nothing for" in self.d.show(run)["reason"], 60, "the idle card to show")
        self.machine.say()
        wait_until(lambda: not self.d.show(run)["reason"], 60, "the card to compute again")


if __name__ == "__main__":
    main()
