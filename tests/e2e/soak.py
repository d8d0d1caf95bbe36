"""tpd killed at each of its fault points under load: what is lost, run twice, told wrongly or billed wrongly.

Lives of tpd-faults follow one another over the same data while jobs are submitted, paused, stopped, retried and
removed; each life ends at the fault point that has had the fewest kills so far. The jobs bear witness of
themselves (soak_job.c), so that nothing is judged by what tpd says alone.
"""

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path

from harness import BIN, Deployment, wait_until

FIXTURE = Path(__file__).resolve().parents[1] / "store" / "fixtures" / "0001.sql"
USAGE_LIMIT_MS = 50
MOST_OPEN = 14
LIFE_S = 12  # for a life to come to its point
MISSES = 20  # lives that did not come to it, until the soak gives the point up
END_S = 120  # for everything to come to its end, once nothing is killed any more
LONG_MS = 900_000
COLLECT_AFTER_MS = 700
SHOWN_AT_ONCE = 50

REGISTRY = """\
series:
  cpu:
    gpus_per_node: 0
    nodes: [{{name: c1, address: 127.0.0.1}}, {{name: c2, address: 127.0.0.1}}]
  g:
    description: Round {round}
    gpus_per_node: 8
    virtual_cards: true
    nodes: [{{name: n1, address: 127.0.0.1}}, {{name: n2, address: 127.0.0.1}}, {{name: n3, address: 127.0.0.1}}]
profiles:
  cpu: {{series: cpu, default_shape: 1}}
  g: {{series: g, default_shape: 1}}
recipes:
  after: {{command: '{job} {root} 50 0 plain'}}
"""

# Points that only a tpd over other data comes to: an empty directory, a database of an old format, a restored one.
ON_NEW_DATA = {"before-migration", "after-migration", "before-token-commit", "after-token-commit"}
ON_OLD_FORMAT = {"before-backup", "after-backup"}
ON_RESTORED = {"before-epoch", "after-epoch"}
COLLECTION = {"before-manifest-removal", "after-manifest-removal", "before-blob-removal", "after-blob-removal"}
CORRECTION = {"before-correction-commit", "after-correction-commit"}
RELOAD = {"before-reload", "reload-in-force", "after-reload"}
# A launch that was cut off, and of which nothing is found, is fenced.
FENCE = {"before-fence", "after-fence", "before-fence-claim", "after-fence-claim"}
# What brings a load to a point sooner than chance does.
WANTED_ACTION = {
    "before-fence-close": "insist", "after-fence-close": "insist",
    "before-rank-signal": "stop", "after-rank-signal": "stop", "before-signal": "stop", "after-signal": "stop",
    "before-pause-file": "pause", "after-pause-file": "pause",
    "before-reap": "lose", "after-reap": "lose",
    "before-run-removal": "remove", "after-run-removal": "remove",
}
# Reached often in any life: die at some time, not at the first.
FREQUENT = {"before-commit", "after-commit", "before-lock-write", "after-lock-write", "before-look", "after-look"}
# Where a start is cut off that follows a kill, so often.
IN_RECOVERY = ["start-locked", "start-loaded", "start-tracked", "start-delivered", "before-secret-file", "before-look",
               "before-lock-write", "before-commit", "before-scan-result"]
AGAIN = 0.2
TERMINAL = {"SUCCEEDED", "FAILED", "STOPPED", "PARTIAL"}


def fault_points():
    return subprocess.run([BIN / "tpd-faults", "fault-points"], capture_output=True, text=True,
                          check=True).stdout.split()


def fsck(data):
    result = subprocess.run([BIN / "tpd", "fsck", "--data", data], capture_output=True, text=True)
    return [] if result.returncode == 0 else [f"fsck: {result.stderr.strip()}"]


class Load:
    """Users of one deployment. Threads of their own; a call that a kill cuts off is no failure."""

    KINDS = (("short", 8), ("fail", 3), ("two-ranks", 3), ("pipeline", 2), ("array", 1), ("long", 3),
             ("stubborn", 1), ("loses-runner", 1))

    def __init__(self, deployment, seed):
        self.d = deployment
        self.rng = random.Random(seed)
        self.lock = threading.Lock()
        self.acknowledged = {}  # run: kind
        self.states = {}  # run: as last seen
        self.removed = set()
        self.stopped = set()  # asked to, or paused: its end may be another than its job's
        self.wanted = None
        self.late = set()  # runs whose missing record was supplied
        self.counter = 0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.work) for _ in range(2)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def finish(self):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def work(self):
        while not self.over.is_set():
            try:
                self.act()
            except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
                self.over.wait(0.05)

    def tp(self, *args, timeout_s=60):
        return self.d.tp(*args, check=False, timeout_s=timeout_s)

    def look(self):
        result = self.tp("ls", "-n", "0", "-o", "json")
        if result.returncode != 0:
            return
        seen = {run["id"]: run["state"] for run in json.loads(result.stdout)["runs"]}
        with self.lock:
            self.states.update(seen)

    def open(self):
        with self.lock:
            return [run for run in self.acknowledged if self.states.get(run, "QUEUED") not in TERMINAL]

    def in_state(self, *states, kinds=None):
        with self.lock:
            return [run for run, state in self.states.items() if state in states and run not in self.removed
                    and (kinds is None or self.acknowledged.get(run) in kinds)]

    def act(self):
        self.look()
        with self.lock:
            wanted = self.wanted
        action = wanted if wanted and self.rng.random() < 0.6 else self.rng.choice(
            ["submit"] * 6 + ["stop", "pause", "resume", "resume", "retry", "remove"])
        if action == "submit" and len(self.open()) >= MOST_OPEN:
            action = self.rng.choice(["stop", "resume"])
        getattr(self, action)()

    def submit(self, kind=None):
        kind = kind or self.rng.choices([k for k, _ in self.KINDS], [w for _, w in self.KINDS])[0]
        with self.lock:
            self.counter += 1
            number = self.counter
        place = self.d.root / "sent" / str(number)
        place.mkdir(parents=True)
        (place / "data").write_text(f"{number}\n")  # of no other snapshot
        job = [BIN / "soak_job", self.d.root]
        flags = ["--dir", place]
        match kind:
            case "short":
                job += [self.rng.randrange(20, 600), 0, "plain"]
                flags += ["--profile", "g:1"]
            case "fail":
                job += [self.rng.randrange(20, 300), 3, "plain"]
                flags += ["--profile", "g:2"]
            case "two-ranks":
                job += [self.rng.randrange(100, 600), 0, "plain"]
                flags += ["--profile", "g:16"]
            case "pipeline":
                job += [50, 0, "plain"]
                flags += ["--then", "after"]
            case "array":
                job += [80, 0, "plain"]
                flags += ["--array", "0-2", "--profile", "g:1"]
            case "long":
                job += [LONG_MS, 0, "plain"]
                flags += ["--profile", "g:1"]
            case "stubborn":
                job += [LONG_MS, 0, "stubborn"]
            case "loses-runner":
                job += [100, 0, "loses-runner"]
                flags += ["--profile", "g:1"]
        result = self.tp("submit", *flags, "--", *job)
        shutil.rmtree(place)
        if result.returncode == 0:
            with self.lock:
                self.acknowledged[result.stdout.decode().strip()] = kind

    def steer(self, verb, runs):
        if not runs:
            return False
        run = self.rng.choice(runs)
        with self.lock:
            self.stopped.add(run)
        return self.tp(verb, run).returncode == 0

    def stop(self):
        if not self.steer("stop", self.in_state("RUNNING", kinds=("long", "stubborn"))):
            if self.wanted == "stop" and len(self.open()) < 2 * MOST_OPEN:
                self.submit("stubborn")

    def insist(self):
        """On a job that ends by KILL only."""
        if not self.steer("stop", self.in_state("RUNNING", kinds=("stubborn",))):
            if len(self.open()) < 2 * MOST_OPEN:
                self.submit("stubborn")

    def pause(self):
        if not self.steer("pause", self.in_state("RUNNING", kinds=("long",))):
            if self.wanted == "pause" and len(self.open()) < 2 * MOST_OPEN:
                self.submit("long")

    def resume(self):
        self.steer("resume", self.in_state("PAUSED"))

    def retry(self):
        self.steer("retry", self.in_state("FAILED", kinds=("fail",)))

    def remove(self):
        runs = self.in_state("SUCCEEDED", kinds=("short",))
        if not runs:
            return self.submit("short")
        run = self.rng.choice(runs)
        with self.lock:
            self.removed.add(run)
        self.tp("rm", "-y", run)
        return None

    def lose(self):
        self.submit("loses-runner")

    def supply_late_record(self):
        """Once the loss of a runner has been billed, the record that it did not live to write. True: there was one."""
        for run in self.in_state("FAILED", kinds=("loses-runner",)):
            if run in self.late:
                continue
            started = self.d.record(run, "0-0.started")
            if started is None:
                continue
            stamps = {f"ended_{c}_us": int(started[f"started_{c}_us"]) + 90_000 for c in ("boot", "unix")}
            record = started | stamps | {"exit": "killed", "code": -1, "term_signal": 9, "signalled": "no",
                                         "signalled_by": "", "signals": "", "log_bytes": 0}
            text = "".join(["tp-record 1\n", *(f"{name}={value}\n" for name, value in record.items()), "end\n"])
            directory = self.d.attempt_dir(run)
            (directory / ".late").write_text(text)
            (directory / ".late").rename(directory / "0-0.exit")
            self.late.add(run)
            return True
        return False

    def end_all(self):
        """Nothing stays paused or long; waits for every run's end. Those that do not come to it."""
        deadline = time.monotonic() + END_S
        while True:
            self.look()
            left = self.open()
            if not left or time.monotonic() > deadline:
                return left
            for run in left:
                if self.acknowledged[run] in ("long", "stubborn") or self.states.get(run) == "PAUSED":
                    self.stopped.add(run)
                    self.tp("stop", run)
            time.sleep(0.3)


class Witness:
    """What the jobs say of themselves."""

    def __init__(self, path):
        self.starts = defaultdict(list)  # (run, step, attempt): [(rank, at)]
        self.ends = defaultdict(dict)  # (run, step, attempt): {rank: (at, code)}
        self.twice = []
        for line in path.read_text().splitlines():
            what, run, step, attempt, pool, rank, at, value = line.split()
            key, rank = (run, step, int(attempt)), (int(pool), int(rank))
            if what == "start":
                self.starts[key].append((rank, int(at)))
            elif what == "end":
                self.ends[key][rank] = (int(at), int(value))
            else:
                self.twice.append(line)

    def launched_twice(self):
        found = [f"alive twice: {line}" for line in self.twice]
        for key, starts in self.starts.items():
            ranks = [rank for rank, _ in starts]
            if len(ranks) != len(set(ranks)):
                found.append(f"started twice: {key}")
        return found

    def complete(self, key):
        """Every rank that started wrote its end."""
        return bool(self.starts.get(key)) and {rank for rank, _ in self.starts[key]} == set(self.ends.get(key, {}))

    def succeeded(self, key):
        return self.complete(key) and all(code == 0 for _, code in self.ends[key].values())

    def duration_ms(self, key):
        return max(at for at, _ in self.ends[key].values()) - max(at for _, at in self.starts[key])


class Verdict:
    def __init__(self):
        self.problems = defaultdict(list)
        self.usage_ms = []  # deviations, for each interval that can be compared

    def add(self, what, sentences):
        self.problems[what] += sentences

    @property
    def ok(self):
        return not any(self.problems.values())


class Soak:
    def __init__(self, kills, seed, minutes, say=print):
        self.kills_wanted = kills
        self.deadline = time.monotonic() + minutes * 60
        self.rng = random.Random(seed)
        self.seed = seed
        self.say = say
        self.points = fault_points()
        self.least = min(5, kills // len(self.points))
        self.kills = Counter()
        self.early = Counter()  # of them, before tpd served
        self.misses = Counter()
        self.verdict = Verdict()

    def run(self):
        """True: nothing was lost, run twice, told or billed wrongly, and every point was reached."""
        special = ON_NEW_DATA | ON_OLD_FORMAT | ON_RESTORED
        each = max(self.least, 1)
        self.kill_on_new_data(each)
        self.kill_on_old_format(each)
        self.kill_on_restored(each)
        self.kill_under_load([point for point in self.points if point not in special])
        self.verdict.add("points not reached often enough", [
            f"{point}: {self.kills[point]} of {max(self.least, 1)}"
            for point in self.points if self.kills[point] < max(self.least, 1)])
        if self.kills.total() < self.kills_wanted:
            self.verdict.add("kills missing", [f"{self.kills.total()} of {self.kills_wanted} in the time given"])
        self.report()
        return self.verdict.ok

    # --- One life -----------------------------------------------------------------------------------

    def die_at(self, deployment, point, times=1, life_s=LIFE_S, while_alive=None, **env):
        """Starts a tpd that ends at `point`. False: it was still alive at the end of its time, and was killed then."""
        log = deployment.root / "tpd.log"
        deployment.kill()
        before = log.stat().st_size if log.exists() else 0
        deployment.start(wait=False, TP_CRASH_AT=f"{point}:{times}", **env)
        end = min(time.monotonic() + life_s, max(self.deadline, time.monotonic() + 1))
        next_push = time.monotonic() + 0.5
        while deployment.process.poll() is None and time.monotonic() < end:
            if while_alive and time.monotonic() > next_push:
                while_alive()
                next_push = time.monotonic() + 1
            time.sleep(0.003)
        reached = deployment.process.poll() is not None
        if not reached:
            deployment.kill()
            self.misses[point] += 1
            return False
        if deployment.process.returncode != -signal.SIGKILL:
            self.verdict.add("lives that ended otherwise", [f"{point}: {deployment.log_tail()[-800:]}"])
            return False
        self.kills[point] += 1
        if self.kills.total() % 50 == 0:
            self.say(f"{self.kills.total()} kills")
        with log.open("rb") as file:
            file.seek(before)
            self.early[point] += b"serving on" not in file.read()
        return True

    def spent(self):
        return time.monotonic() > self.deadline

    # --- Other data than the load's ------------------------------------------------------------------

    def serves(self, deployment, what):
        """After the kill it starts, runs a job, and its database is sound."""
        deployment.kill()
        deployment.start()
        if deployment.wait(deployment.submit("true")) != 0:
            self.verdict.add("broken starts", [what])
        deployment.kill()
        self.verdict.add("database", fsck(deployment.data))

    def kill_on_new_data(self, each):
        for point in sorted(ON_NEW_DATA):
            for times in range(1, each + 1):
                deployment = Deployment(binary="tpd-faults")
                try:
                    migrations = point.endswith("migration")
                    self.die_at(deployment, point, times if migrations else 1)
                    if times == each:
                        self.serves(deployment, point)
                finally:
                    deployment.close()

    def kill_on_old_format(self, each):
        for point in sorted(ON_OLD_FORMAT):
            for _ in range(each):
                deployment = Deployment(binary="tpd-faults")
                try:
                    deployment.data.mkdir(mode=0o700)
                    with closing(sqlite3.connect(deployment.data / "tpd.db")) as database:
                        database.executescript(FIXTURE.read_text())
                    self.die_at(deployment, point)
                    deployment.kill()
                    deployment.start()
                    if not (deployment.data / "tpd.db.v1.backup").exists():
                        self.verdict.add("database", [f"{point}: no backup of the old format"])
                finally:
                    deployment.close()

    def kill_on_restored(self, each):
        deployment = Deployment(binary="tpd-faults")
        try:
            deployment.start()
            run = deployment.submit("true")
            deployment.wait(run)
            for point in sorted(ON_RESTORED):
                for _ in range(each):
                    self.restore_older(deployment)
                    self.die_at(deployment, point)
            self.serves(deployment, "a restored database")
            deployment.start()
            if deployment.show(run)["state"] != "SUCCEEDED":
                self.verdict.add("lost", [f"{run} after its database was restored"])
        finally:
            deployment.close()

    @staticmethod
    def restore_older(deployment):
        """The database becomes an older one than the lock file remembers; a run goes with what came since."""
        files = ("tpd.db", "tpd.db-wal")
        deployment.kill()
        deployment.start()  # whatever epoch is due is begun
        deployment.kill()
        kept = {name: (deployment.data / name).read_bytes() for name in files if (deployment.data / name).exists()}
        deployment.start()
        deployment.wait(deployment.submit("true"))
        deployment.kill()
        for name in (*files, "tpd.db-shm"):
            (deployment.data / name).unlink(missing_ok=True)
        for name, content in kept.items():
            (deployment.data / name).write_bytes(content)

    # --- Under load ------------------------------------------------------------------------------------

    def kill_under_load(self, points):
        deployment = Deployment(binary="tpd-faults", stop_grace="500ms", pause_grace="500ms", user_retries=1)
        (deployment.root / "locks").mkdir()
        (deployment.root / "witness").touch()
        self.round = 0
        self.write_registry(deployment)
        deployment.start()
        load = Load(deployment, self.seed)
        load.start()
        try:
            while self.kills.total() < self.kills_wanted and not self.spent():
                point = self.next_point(points)
                if point is None:
                    break
                self.one_life(deployment, load, point)
                if self.rng.random() < AGAIN and self.kills.total() < self.kills_wanted:
                    self.die_at(deployment, self.rng.choice(IN_RECOVERY))
            load.finish()
            deployment.kill()
            deployment.start()
            self.verify(deployment, load)
        finally:
            load.finish()
            self.end_jobs(deployment)
            deployment.close()

    @staticmethod
    def end_jobs(deployment):
        """Nothing outlives a soak that was broken off."""
        if deployment.process.poll() is not None:
            deployment.start()
        deployment.tp("stop", "--all-users", "-y", check=False)
        wait_until(lambda: not [run for run in deployment.json("ls", "-n", "0")["runs"] if run["state"] not in TERMINAL],
                   END_S, "the jobs' end")

    def next_point(self, points):
        """Among those with the fewest kills; none: all were given up."""
        left = [p for p in points if self.misses[p] < MISSES]
        if not left:
            return None
        fewest = min(self.kills[p] for p in left)
        return self.rng.choice([p for p in left if self.kills[p] == fewest])

    def one_life(self, deployment, load, point):
        with load.lock:
            load.wanted = WANTED_ACTION.get(point)
        times = self.rng.randint(1, 25) if point in FREQUENT else self.rng.randint(1, 2)
        if point in RELOAD:
            self.die_at(deployment, point, while_alive=lambda: self.write_registry(deployment))
        elif point in COLLECTION:
            self.die_at(deployment, point, TP_COLLECT_AFTER_MS=str(COLLECT_AFTER_MS))
        elif point in FENCE:
            self.die_at(deployment, "before-launch")
            self.die_at(deployment, point)
        elif point in CORRECTION:
            self.correct(deployment, load, point)
        elif point.startswith("start-") or "scan" in point or "secret" in point or "ballast" in point:
            self.die_at(deployment, point)
        else:
            self.die_at(deployment, point, times)

    def correct(self, deployment, load, point):
        """A record comes late while tpd is away; the life that finds it dies of it."""
        deployment.start()
        with load.lock:
            load.wanted = "lose"
        end = time.monotonic() + LIFE_S
        while not load.supply_late_record() and time.monotonic() < end:
            time.sleep(0.2)
        deployment.kill()
        self.die_at(deployment, point)

    def write_registry(self, deployment):
        self.round += 1
        text = REGISTRY.format(round=self.round, job=BIN / "soak_job", root=deployment.root)
        (deployment.config / ".new").write_text(text)
        (deployment.config / ".new").rename(deployment.config / "registry.yaml")

    # --- The verdict ------------------------------------------------------------------------------------

    def verify(self, deployment, load):
        left = load.end_all()
        self.verdict.add("lost", [f"{run} is still {load.states.get(run, 'not listed')}: "
                                  f"{deployment.tp('why', run, check=False).stdout.decode()[:400]}" for run in left])
        listed = [run["id"] for flags in ((), ("--removed",)) for run in deployment.json("ls", "-n", "0", *flags)["runs"]]
        shown = {}
        for first in range(0, len(listed), SHOWN_AT_ONCE):  # `ls` leaves out tasks of arrays
            some = deployment.json("show", *listed[first:first + SHOWN_AT_ONCE])["runs"]
            shown |= {run["id"]: run for run in some}
        intervals = deployment.json("usage", "--audit")["intervals"]
        deployment.kill(signal.SIGTERM)
        self.verdict.add("database", fsck(deployment.data))
        witness = Witness(deployment.root / "witness")
        self.verdict.add("lost", [f"{run} is not listed" for run in load.acknowledged if run not in shown])
        self.verdict.add("launched twice", witness.launched_twice())
        steps = {(run["id"], step["index"]): step for run in shown.values() for step in run["steps"]}
        for (run, _), step in steps.items():
            self.judge_end(run, step, witness, load.stopped)
        self.judge_usage(intervals, steps, witness)
        self.starts = sum(len(starts) for starts in witness.starts.values())
        self.runs = len(load.acknowledged)

    def judge_end(self, run, step, witness, asked_to_end):
        name = step["spec"]["name"]
        attempt = max((past["number"] for past in step["past_attempts"]), default=0)
        key = (run, name, attempt)
        if step["state"] == "SUCCEEDED" and not witness.succeeded(key):
            self.verdict.add("false SUCCEEDED", [f"{key}: {witness.ends.get(key)}"])
        if step["state"] == "FAILED" and witness.succeeded(key) and run not in asked_to_end:
            self.verdict.add("false FAILED", [f"{key}: {step['failure']}"])
        if attempt and not witness.starts.get(key) and step["state"] == "SUCCEEDED":
            self.verdict.add("lost", [f"{key} never ran"])

    def judge_usage(self, intervals, steps, witness):
        billed = Counter()
        cards_of_pools = defaultdict(dict)  # an interval over a month's end is a row in each
        flagged = set()
        for row in intervals:
            key = (row["run"], steps[row["run"], row["step"]]["spec"]["name"], row["attempt"])
            billed[key] += row["gpu_ms"]
            cards_of_pools[key][row["pool"]] = row["cards"]
            if row["flagged"]:
                flagged.add(key)
        for key, gpu_ms in billed.items():
            cards = sum(cards_of_pools[key].values())
            if key in flagged or not cards or not witness.complete(key):
                continue
            off = gpu_ms / cards - witness.duration_ms(key)
            self.verdict.usage_ms.append(off)
            if abs(off) > USAGE_LIMIT_MS:
                self.verdict.add("billed wrongly", [f"{key}: {off:+.0f} ms of {witness.duration_ms(key)} x {cards}"])
        unbilled = [key for key in witness.ends if witness.complete(key) and key not in billed
                    and key[2] and self.has_cards(key, steps)]
        self.verdict.add("not billed", [str(key) for key in unbilled])

    @staticmethod
    def has_cards(key, steps):
        return any(run == key[0] and step["spec"]["name"] == key[1] and any("g" in p for p in step["spec"]["profiles"])
                   for (run, _), step in steps.items())

    def report(self):
        self.say(f"{'fault point':28} kills  before it served  not reached")
        for point in self.points:
            self.say(f"{point:28} {self.kills[point]:5}  {self.early[point]:16}  {self.misses[point]:11}")
        self.say(f"{'in all':28} {self.kills.total():5}  {self.early.total():16}  "
                 f"{self.misses.total():11}")
        self.say(f"seed {self.seed}: {self.runs} runs acknowledged, {self.starts} starts of ranks")
        for what in ("lost", "launched twice", "false SUCCEEDED", "false FAILED", "database", "billed wrongly",
                     "not billed", "points not reached often enough"):
            self.say(f"{what}: {len(self.verdict.problems[what])}")
        usage = sorted(abs(off) for off in self.verdict.usage_ms)
        if usage:
            self.say(f"usage against the witness, {len(usage)} intervals: median {usage[len(usage) // 2]:.0f} ms, "
                     f"most {usage[-1]:.0f} ms, over {USAGE_LIMIT_MS} ms: {sum(o > USAGE_LIMIT_MS for o in usage)}")
        for what, sentences in self.verdict.problems.items():
            for sentence in sentences:
                self.say(f"{what}: {sentence}")
