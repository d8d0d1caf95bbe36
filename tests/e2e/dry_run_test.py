"""What --dry-run of a quota edit and of a reload says is what the change then does, no more and no less."""

import getpass
import os
from collections import Counter
from datetime import datetime, timedelta

from gates_test import CARDS, ZONE, Case, registry, weekday
from harness import main, wait_until

# By a rule that admins set; the others come and go with what runs.
RULES = {"HELD", "WINDOW", "QUOTA_GPUS", "QUOTA_SERIES", "QUOTA_JOBS", "QUOTA_GPU_HOURS", "QUOTA_STORAGE"}
FILE_BYTES = 4096
BIG = "  big: {series: g, default_shape: 8}\n"


class DryRuns(Case):
    policy = {"stop_grace": "1s", "pause_grace": "1s"}

    def write(self, text):
        """In place and as long and as old as before: the watcher sees no change, whoever reads the file does."""
        path = self.d.config / "registry.yaml"
        before = path.stat() if path.exists() else None
        with open(path, "r+" if before else "w") as file:
            file.write(text + "#" * (FILE_BYTES - len(text) - 1) + "\n")
        if before:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def foretold(self, *change):
        """{kind: runs} of a dry run, after which everything is as it was."""
        before = self.stands()
        document = self.d.json("admin", *change, "--dry-run")
        self.assertEqual(self.stands(), before)
        forecast = document["forecast"]
        effects = {}
        for effect in forecast["effects"]:
            effects.setdefault(effect["kind"], set()).add(effect["run"])
        self.assertEqual({count["kind"]: count["count"] for count in forecast["counts"]},
                         dict(Counter(effect["kind"] for effect in forecast["effects"])))
        self.over = [(over["user"], over["what"], over["used"], over["limit"]) for over in forecast["over"]]
        return effects

    def stands(self):
        """{run: (state, the rules that hold it)}"""
        stands = {}
        for run in self.runs:
            step = self.d.step(run)
            stands[run] = (step["state"], frozenset(gate["gate"] for gate in step["gates"]) & RULES)
        return stands

    def happened(self, before):
        effects = {}
        for run, (state, rules) in self.stands().items():
            was, had = before[run]
            kind = None
            if was == "QUEUED" and state != "QUEUED":
                kind = "RELEASED"
            elif was == "RUNNING" and state == "PAUSED":
                kind = "PAUSED"
            elif was == "PAUSED" and state != "PAUSED":
                kind = "RESUMED"
            elif bool(rules) != bool(had) and state in ("QUEUED", "PAUSED"):
                kind = "HELD" if rules else "OPENED"
            if kind:
                effects.setdefault(kind, set()).add(run)
        return effects

    def check(self, *change, **expected):
        """The dry run says `expected`, and the change does exactly that."""
        self.assertEqual(self.foretold(*change), expected)
        before = self.stands()
        self.d.tp("admin", *change)
        wait_until(lambda: self.happened(before) == expected, what=f"{expected}, not {self.happened(before)}")
        self.assertEqual(self.foretold(*change), {}, "what is so already has no effect")

    def quota_of_me(self, *limits):
        return ("quota", "set", getpass.getuser(), *limits)

    def setUp(self):
        super().setUp()
        self.runs = []
        self.over = []

    def sleeps(self, *flags):
        """Submits; RUNNING or QUEUED by what there is room for."""
        self.runs.append(self.d.submit("sleep", "600", flags=flags))
        return self.runs[-1]

    def running(self, *flags):
        run = self.sleeps(*flags)
        self.reaches(run, "RUNNING")
        return run

    def test_raising_a_quota(self):
        self.quota("--gpus", "4")
        self.running("--profile", "g:4")
        first = self.sleeps(*CARDS)
        second = self.sleeps("--profile", "g:4")
        third = self.sleeps(*CARDS)
        # Room for 12 cards more: the third is let through by its quota and then waits for cards.
        self.check(*self.quota_of_me("--gpus", "none"), RELEASED={first, second}, OPENED={third})

    def test_lowering_and_clearing_a_quota(self):
        self.running("--profile", "g:16")
        waits = [self.sleeps(*CARDS) for _ in range(3)]
        cpu = self.sleeps("--profile", "cpu:1")
        self.reaches(cpu, "RUNNING")
        self.check(*self.quota_of_me("--gpus", "4"), HELD=set(waits))
        self.foretold(*self.quota_of_me("--gpus", "3", "--jobs", "1"))
        me = getpass.getuser()
        self.assertEqual(self.over, [(me, "gpus", 16, 3), (me, "jobs", 2, 1)])
        self.check("quota", "unset", me, OPENED=set(waits))

    def test_removing_a_rule(self):
        me = getpass.getuser()
        self.d.tp("admin", "quota", "set", me, "--gpus", "0", "--until", "1h")
        held = self.sleeps(*CARDS)
        [rule] = self.d.json("admin", "quota", "show", me)["standing"]["rules"]
        self.assertEqual(self.foretold("quota", "unset", rule["id"]), {"RELEASED": {held}})
        self.d.tp("admin", "quota", "unset", rule["id"])
        self.reaches(held, "RUNNING")

    def test_a_window_that_closes_and_is_held_open(self):
        running = [self.running("--profile", "g:8") for _ in range(2)]
        waits = self.sleeps(*CARDS)
        opens = datetime.now(ZONE) + timedelta(days=3)
        self.write(registry(hours={weekday(opens): ["10:30-12:00"]}))
        self.check("reload", PAUSED=set(running), HELD={waits})
        foretold = self.foretold("window", "hold-open", "g", "--for", "1h")
        self.assertEqual(foretold["RESUMED"], set(running))
        self.assertEqual(foretold.get("RELEASED", set()) | foretold.get("OPENED", set()), {waits})

    def test_a_series_that_shrinks(self):
        running = self.running(*CARDS)
        self.running(*CARDS)
        large = self.sleeps("--profile", "g:16")
        self.sleeps(*CARDS)
        self.write(registry(nodes=1))
        self.check("reload", HELD={large})
        self.assertEqual(self.d.step(running)["state"], "RUNNING")
        self.write(registry(nodes=3))
        self.check("reload", OPENED={large})  # which reserves the new node

    def test_a_profile_that_goes(self):
        self.write(registry() + BIG)
        self.d.tp("admin", "reload")
        for _ in range(2):
            self.running("--profile", "big:8")
        gone = self.sleeps("--profile", "big:8")
        paused = self.sleeps("--profile", "big:8")
        self.d.tp("pause", paused)
        self.sleeps(*CARDS)
        self.write(registry())
        self.assertEqual(self.foretold("reload"), {"HELD": {gone, paused}})
        self.d.tp("admin", "reload")
        wait_until(lambda: "HELD" in self.gates(gone), what="HELD")
        text = self.d.tp("show", gone).stdout.decode()
        self.assertIn("big", text)

    def test_people_get_counts_first_and_a_screenful(self):
        self.running("--profile", "g:16")
        for _ in range(23):
            self.sleeps("--profile", "g:1")
        lines = self.d.tp("admin", *self.quota_of_me("--gpus", "0"), "--dry-run").stdout.decode().splitlines()
        self.assertEqual(lines[0], "23 held")
        self.assertIn("is over by 16: gpus 16 of 0 in use", lines[1])
        self.assertEqual(lines[-1], "and 3 more: see -o wide")
        self.assertEqual(len(lines), 2 + 1 + 20 + 1)
        wide = self.d.tp("admin", *self.quota_of_me("--gpus", "0"), "--dry-run", "-o", "wide").stdout.decode()
        self.assertEqual(len(wide.splitlines()), 2 + 1 + 23)


if __name__ == "__main__":
    main()
