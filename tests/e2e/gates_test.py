"""What keeps a run from starting: each gate with a real tpd, its sentence read through `tp`."""

import getpass
import json
import os
import shutil
import signal
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from harness import BIN, Deployment, DeploymentTest, main, wait_until

CARDS = ("--profile", "g:8")
# Not UTC and without summer time, so that a sentence in the wrong zone shows.
ZONE = ZoneInfo("Asia/Tokyo")
REGISTRY = """\
series:
  g:
    gpus_per_node: 8
    virtual_cards: true
    nodes: [{nodes}]
{windows}
  cpu:
    gpus_per_node: 0
    nodes: [{{name: c1, address: 127.0.0.1}}, {{name: c2, address: 127.0.0.1}}]
profiles:
  g: {{series: g, default_shape: 8}}
  cpu: {{series: cpu, default_shape: 1}}
"""
WINDOWS = """\
    windows:
      - {{timezone: {zone}, grace: 1s, open: {hours}}}
"""


def registry(nodes=2, hours=None):
    """Eight cards a node; `hours` as in registry.yaml, always open without them."""
    names = ", ".join(f"{{name: n{i}, address: 127.0.0.1}}" for i in range(1, nodes + 1))
    windows = WINDOWS.format(zone=ZONE.key, hours=json.dumps(hours)) if hours else ""
    return REGISTRY.format(nodes=names, windows=windows)


def weekday(day):
    return day.strftime("%A").lower()


def hours_until(close):
    """Open for the day before `close` and up to it."""
    hours = {weekday(close - timedelta(days=1)): ["00:00-24:00"]}
    if close.time().replace(second=0, microsecond=0) != close.time().min:
        hours[weekday(close)] = [f"00:00-{close:%H:%M}"]
    return hours


class Case(DeploymentTest):
    def setUp(self):
        self.d = Deployment(**self.policy)
        self.addCleanup(self.d.close)
        self.write(registry())
        self.d.start()

    def write(self, text):
        (self.d.config / "registry.yaml").write_text(text)

    def reload(self, text):
        self.write(text)
        self.d.tp("admin", "reload")

    def quota(self, *limits):
        self.d.tp("admin", "quota", "set", getpass.getuser(), *limits)

    def gates(self, run):
        return {gate["gate"]: gate for gate in self.d.json("why", run)["steps"][0]["gates"]}

    def running(self, *flags):
        run = self.d.submit("sleep", "600", flags=flags)
        self.reaches(run, "RUNNING")
        return run

    def reaches(self, run, state):
        self.assertEqual(self.d.tp("wait", run, "--until", state, "--timeout", "60s", check=False).returncode, 0,
                         self.d.step(run))

    def starts(self, run):
        self.assertEqual(self.d.wait(run), 0, self.d.step(run))

    def waits_for(self, run, gate, *words):
        """`gate` alone keeps `run`; every view says so in these words. Returns the gate."""
        wait_until(lambda: list(self.gates(run)) == [gate], what=f"{gate} of {self.d.step(run)}")
        found = self.gates(run)[gate]
        views = [found["sentence"], *(self.d.tp(*view).stdout.decode() for view in (("why", run), ("show", run)))]
        views += [line for line in self.d.tp("status").stdout.decode().splitlines() if line.startswith(f"{run} ")]
        views += [line for line in self.d.tp("queue").stdout.decode().splitlines() if f" {run} " in line]
        self.assertEqual(len(views), 5, views)
        for view in views:
            for word in words:
                self.assertIn(word, view)
        for view in views[1:]:
            self.assertIn(gate, view)
        return found


class Holds(Case):
    policy = {"stop_grace": "1s", "user_retries": 1, "retry_cooldown": "30m"}

    def test_held_by_its_owner(self):
        # What starts at once cannot be held any more: all cards are taken.
        blocker = self.running("--profile", "g:16")
        run = self.d.submit("true", flags=CARDS)
        self.d.tp("hold", run)
        self.d.tp("stop", blocker)
        self.waits_for(run, "HELD", "held by its owner: tp release lets it go")
        self.d.tp("release", run)
        self.starts(run)

    def test_held_by_an_admin(self):
        self.d.kill(signal.SIGTERM)
        ana = self.d.grant("ana", "user")
        self.d.start()
        blocker = self.running("--profile", "g:16")
        run = self.d.tp("submit", *CARDS, "--", "true", token=ana).stdout.decode().strip()
        self.d.tp("hold", run)
        self.d.tp("stop", blocker)
        why = wait_until(lambda: "CAPACITY" not in (text := self.d.tp("why", run, token=ana).stdout.decode()) and text)
        self.assertIn("HELD  held by an admin, who can release it", why)
        self.assertIn(b"an admin holds it still", self.d.tp("release", run, token=ana).stderr)
        self.assertEqual(list(self.gates(run)), ["HELD"])
        self.d.tp("release", run)
        self.starts(run)

    def test_a_shape_that_a_reload_made_impossible(self):
        blocker = self.running("--profile", "g:16")
        run = self.d.submit("true", flags=("--profile", "g:16"))
        self.reload(registry(nodes=1))
        self.d.tp("stop", blocker)
        self.waits_for(run, "HELD", "its shape is no longer valid: ", "change it with tp update --profile")
        self.d.tp("update", run, "--profile", "g:8")
        self.starts(run)

    def test_a_retry_waits_for_its_cooldown(self):
        run = self.d.submit("false", flags=CARDS)
        gate = self.waits_for(run, "COOLDOWN", "it failed; retry 1 starts in ", " s")
        self.assertIsNotNone(gate["opens_at"])
        self.assertIsNotNone(gate["since"])


class Windows(Case):
    policy = {"stop_grace": "1s"}

    def hold_open(self, *how):
        self.d.tp("admin", "window", "hold-open", "g", *how)

    def test_closed_until_an_admin_holds_it_open(self):
        opens = (datetime.now(ZONE) + timedelta(days=3)).replace(hour=10, minute=30, second=0, microsecond=0)
        self.reload(registry(hours={weekday(opens): ["10:30-12:00"]}))
        run = self.d.submit("sleep", "600", flags=CARDS)
        gate = self.waits_for(run, "WINDOW",
                              f"the window of g is closed; it opens {opens:%a %Y-%m-%d %H:%M} Asia/Tokyo")
        self.assertEqual(datetime.fromisoformat(gate["opens_at"]), opens)
        self.hold_open("--for", "1h")
        self.reaches(run, "RUNNING")
        self.hold_open("--end")
        self.reaches(run, "PAUSED")
        self.assertIn("its window", self.d.tp("show", run).stdout.decode())
        self.hold_open("--for", "1h")
        self.reaches(run, "RUNNING")
        self.assertEqual(self.d.step(run)["attempt"]["number"], 2)

    def test_what_would_not_fit_before_it_closes(self):
        close = datetime.now(ZONE) + timedelta(hours=2)
        self.reload(registry(hours=hours_until(close)))
        run = self.d.submit("true", flags=(*CARDS, "--time-limit", "4h"))
        gate = self.waits_for(run, "WINDOW", f"the window of g closes {close:%a %Y-%m-%d %H:%M} Asia/Tokyo, in 1h",
                              "and this job needs 4h; a time limit of at most 1h", "would fit")
        self.assertIsNone(gate["opens_at"])
        self.d.tp("update", run, "--time-limit", "10m")
        self.starts(run)


class Quotas(Case):
    policy = {"stop_grace": "1s"}

    def test_cards(self):
        self.quota("--gpus", "8")
        first = self.running(*CARDS)
        second = self.d.submit("sleep", "600", flags=CARDS)
        self.waits_for(second, "QUOTA_GPUS",
                       "your GPUs: 8 of 8 in use, this job needs 8; starts when 8 of them are released")
        self.d.tp("stop", first)
        self.reaches(second, "RUNNING")

    def test_lowering_stops_nothing(self):
        running = self.running("--profile", "g:8")
        self.quota("--gpus", "4")
        run = self.d.submit("true", flags=("--profile", "g:2"))
        self.waits_for(run, "QUOTA_GPUS",
                       "your GPUs: 8 of 4 in use (over by 4), this job needs 2; starts when 6 of them are")
        self.assertIn("gpus 8/4 (over by 4)", self.d.tp("status").stdout.decode())
        self.assertEqual(self.d.step(running)["state"], "RUNNING")
        self.d.tp("stop", running)
        self.starts(run)

    def test_larger_than_the_quota_itself(self):
        self.quota("--gpus", "4")
        run = self.d.submit("true", flags=CARDS)
        self.waits_for(run, "QUOTA_GPUS",
                       "0 of 4 in use, this job needs 8, more than the quota itself: an admin can raise it")
        self.quota("--gpus", "default")
        self.starts(run)

    def test_cards_of_a_series(self):
        self.quota("--series", "g=8")
        first = self.running(*CARDS)
        second = self.d.submit("true", flags=CARDS)
        self.waits_for(second, "QUOTA_SERIES",
                       "your g GPUs: 8 of 8 in use, this job needs 8; starts when 8 of them are released")
        self.starts(self.d.submit("true"))
        self.d.tp("stop", first)
        self.starts(second)

    def test_job_slots(self):
        self.quota("--jobs", "1")
        first = self.running()
        second = self.d.submit("true")
        self.waits_for(second, "QUOTA_JOBS", "your jobs: 1 of 1 slots in use; starts when one of them ends")
        self.d.tp("stop", first)
        self.starts(second)
        self.quota("--jobs", "0")
        third = self.d.submit("true")
        self.waits_for(third, "QUOTA_JOBS", "the quota lets none start; an admin can raise it")

    def test_gpu_hours(self):
        self.quota("--gpu-hours", "0")
        run = self.d.submit("true", flags=CARDS)
        gate = self.waits_for(run, "QUOTA_GPU_HOURS",
                              "your GPU-hours: 0.0 of 0 used this month: the quota lets none start; an admin can "
                              "raise it")
        self.assertIsNone(gate["opens_at"])
        self.starts(self.d.submit("true"))
        self.quota("--gpu-hours", "1")
        self.starts(run)

    def test_storage(self):
        stores = self.d.submit("sh", "-c", "dd if=/dev/zero of=$TP_OUTPUT_DIR/model bs=1M count=2 conv=fsync")
        self.assertEqual(self.d.wait(stores), 0)
        self.d.kill(signal.SIGTERM)
        self.d.start()  # and with it the next scan
        self.quota("--storage", "1MiB")
        run = self.d.submit("true")
        self.waits_for(run, "QUOTA_STORAGE", "your storage: 2.", " MiB of 1.0 MiB used, measured ",
                       " ago; remove runs with tp rm")
        self.quota("--storage", "1GiB")
        self.starts(run)


class Room(Case):
    policy = {"stop_grace": "1s", "relaunch_backoff": "10m", "relaunch_backoff_max": "10m"}

    def test_capacity_names_the_numbers(self):
        first = self.running("--profile", "g:4")
        second = self.d.submit("true", flags=("--profile", "g:16"))
        self.waits_for(second, "CAPACITY",
                       "g needs 2 nodes x 8 cards, 12 of 16 cards are free; starts when cards are released")
        self.d.tp("stop", first)
        self.starts(second)

    def test_places_of_a_series_without_cards(self):
        first = self.running("--profile", "cpu:2")
        second = self.d.submit("true")
        self.waits_for(second, "CAPACITY", "cpu needs 1 node, 0 of 2 places are free; starts when cards are released")
        self.d.tp("stop", first)
        self.starts(second)

    def test_a_reservation_lets_only_shorter_jobs_pass(self):
        first = self.running(*CARDS, "--time-limit", "1h")
        large = self.d.submit("true", flags=("--profile", "g:16"))
        self.waits_for(large, "CAPACITY", "8 of 16 cards are free")
        self.starts(self.d.submit("true", flags=(*CARDS, "--time-limit", "10m")))
        long = self.d.submit("true", flags=(*CARDS, "--time-limit", "3h"))
        self.waits_for(long, "ORDER",
                       "the free cards are reserved for a job ahead, which starts in 5", "m at the latest; "
                       "a time limit below that would let this one start now")
        self.d.tp("update", long, "--time-limit", "10m")
        self.starts(long)
        self.d.tp("stop", first)
        self.starts(large)

    def test_a_launch_that_does_not_come_up(self):
        # A tpd whose tp-rank goes away, as in an upgrade that is half done.
        self.d.kill(signal.SIGTERM)
        bin_dir = self.d.root / "bin"
        bin_dir.mkdir()
        for program in ("tpd", "tp-rank"):
            shutil.copy2(BIN / program, bin_dir)
        self.d.binary = bin_dir / "tpd"
        self.d.start()
        os.rename(bin_dir / "tp-rank", bin_dir / "gone")
        run = self.d.submit("true")
        gate = self.waits_for(run, "BACKEND", "launch 1 did not come up (", "tp-rank", "the next try is in ")
        self.assertIsNotNone(gate["opens_at"])
        self.d.tp("stop", run)
        self.assertEqual(self.d.wait(run), 6)


if __name__ == "__main__":
    main()
