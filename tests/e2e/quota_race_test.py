"""Eight clients and an admin at once: no start goes above the quota in force at its commit.

Proved afterwards from what was committed: the event log, and the audit of quota edits, whose rows name the
newest event before them. Events after an edit were decided under it.
"""

import json
import re
import signal
import sqlite3
import subprocess
import unittest
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field

from harness import BIN, Deployment, main, wait_until

ROUNDS = 1000
USERS = ("ana", "ben")
NO_LIMIT = float("inf")
LIVE = {"SUBMITTED", "PENDING", "RUNNING"}
REGISTRY = """\
series:
  g:
    gpus_per_node: 8
    virtual_cards: true
    nodes: [{name: n1, address: 127.0.0.1}, {name: n2, address: 127.0.0.1}, {name: n3, address: 127.0.0.1}]
  cpu:
    gpus_per_node: 0
    nodes: [{name: c1, address: 127.0.0.1}, {name: c2, address: 127.0.0.1}, {name: c3, address: 127.0.0.1}]
profiles:
  g: {series: g, default_shape: 8}
  cpu: {series: cpu, default_shape: 1}
"""


@dataclass
class Standing:
    """What a user may hold and holds."""

    gpus: float = NO_LIMIT
    series: float = NO_LIMIT
    jobs: float = NO_LIMIT
    held: Counter = field(default_factory=Counter)  # live run -> cards

    def edit(self, words):
        """`gpus: 4, gpus of g: no limit, jobs: 2`, as the audit has it."""
        limits = dict(word.split(": ") for word in words.split(", "))
        number = {name: NO_LIMIT if limit == "no limit" else int(limit) for name, limit in limits.items()}
        self.gpus, self.series, self.jobs = number["gpus"], number["gpus of g"], number["jobs"]

    def cards(self):
        return self.held.total()

    def most_cards(self):
        return min(self.gpus, self.series)

    def over(self):
        return self.cards() > self.most_cards() or len(self.held) > self.jobs

    def full(self):
        return self.cards() == self.most_cards() or len(self.held) == self.jobs


class History:
    """Goes through what was committed, in its order."""

    def __init__(self, database):
        self.runs = {n: (owner, int(profile.split(":")[1]) * profile.startswith("g:")) for n, owner, profile in
                     database.execute("SELECT n, owner, spec ->> '$.value.profiles[0]' FROM run JOIN step "
                                      "ON run = n")}
        self.standing = defaultdict(Standing)
        self.seen = Counter()
        self.wrong = []
        # An edit comes after the event that it names and before the next one.
        acts = [((revision, 1, id), self.take_edit, detail) for id, revision, detail in
                database.execute("SELECT id, revision, detail FROM audit WHERE method LIKE '%SetQuota'")]
        acts += [((event[0], 0, 0), self.take_event, event) for event in
                 database.execute("SELECT revision, run, from_state, to_state FROM event")]
        for _, take, what in sorted(acts, key=lambda act: act[0]):
            take(what)

    def take_edit(self, detail):
        user, words = re.fullmatch(r"quota of (\w+): (.*?)(?:; before: .*)?", detail).groups()
        self.standing[user].edit(words)
        self.seen["edits"] += 1
        self.seen["edits that left one over"] += self.standing[user].over()

    def take_event(self, event):
        revision, run, before, after = event
        owner, cards = self.runs[run]
        standing = self.standing[owner]
        if before not in LIVE and after in LIVE:
            standing.held[run] = cards
            self.seen["starts"] += 1
            self.seen["starts up to a limit"] += standing.full()
            if len(standing.held) > standing.jobs or (cards > 0 and standing.cards() > standing.most_cards()):
                self.wrong.append(f"revision {revision}: {owner} starts run {run} and then has {standing}")
        elif before in LIVE and after not in LIVE:
            del standing.held[run]


class Proof(unittest.TestCase):
    """That History sees what it is there to see."""

    def judged(self, *edits):
        """Runs 1 (8 cards) and 2 (without) start at revisions 1 and 2, run 1 ends at 3, run 3 (8 cards) starts at 4."""
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript("CREATE TABLE run (n, owner); CREATE TABLE step (run, spec);"
                                   "CREATE TABLE event (revision, run, from_state, to_state);"
                                   "CREATE TABLE audit (id INTEGER PRIMARY KEY, method, detail, revision)")
            for run, profile in ((1, "g:8"), (2, "cpu:1"), (3, "g:8")):
                database.execute("INSERT INTO run VALUES (?, 'ana')", (run,))
                spec = json.dumps({"value": {"profiles": [profile]}})
                database.execute("INSERT INTO step VALUES (?, ?)", (run, spec))
            database.executemany("INSERT INTO event VALUES (?, ?, ?, ?)", [
                (1, 1, "QUEUED", "SUBMITTED"), (2, 2, "QUEUED", "SUBMITTED"), (3, 1, "RUNNING", "SUCCEEDED"),
                (4, 3, "QUEUED", "SUBMITTED")])
            for revision, gpus, series, jobs in edits:
                words = f"quota of ana: gpus: {gpus}, gpus of g: {series}, jobs: {jobs}"
                database.execute("INSERT INTO audit VALUES (NULL, 'SetQuota', ?, ?)", (words, revision))
            return [int(re.match(r"revision (\d+):", wrong)[1]) for wrong in History(database).wrong]

    def test_within_the_limits(self):
        self.assertEqual(self.judged((0, 8, "no limit", 2)), [])

    def test_a_lowering_stops_nothing_and_counts_from_then_on(self):
        self.assertEqual(self.judged((2, 0, 0, 0), (3, 8, 8, 2)), [])
        self.assertEqual(self.judged((1, 4, "no limit", 9)), [4])
        self.assertEqual(self.judged((3, "no limit", 4, 9)), [4])
        self.assertEqual(self.judged((4, 0, 0, 0)), [])

    def test_slots_count_without_cards(self):
        self.assertEqual(self.judged((0, 8, 8, 1)), [2, 4])


class QuotaRace(unittest.TestCase):
    def setUp(self):
        self.d = Deployment(stop_grace="0s")
        self.addCleanup(self.d.close)
        (self.d.config / "registry.yaml").write_text(REGISTRY)
        self.d.start()
        self.d.kill(signal.SIGTERM)
        self.tokens = {user: self.d.grant(user, "user") for user in USERS} | {"root": self.d.grant("root", "admin")}
        self.d.start()

    def race(self):
        server = json.loads((self.d.data / "client.json").read_text())["address"]
        lines = "".join(f"{user} {self.tokens[user]}\n" for user in ("root", *USERS))
        subprocess.run([BIN / "quota_race_client", server, str(ROUNDS)], input=lines.encode(), check=True, timeout=280)

    def database(self):
        return closing(sqlite3.connect(f"file:{self.d.data}/tpd.db?mode=ro", uri=True))

    def over(self):
        with self.database() as database:
            live = "SELECT count(*) FROM step WHERE state NOT IN ('SUCCEEDED', 'FAILED', 'STOPPED')"
            return database.execute(live).fetchone() == (0,)

    def test_no_start_goes_above_the_quota_in_force(self):
        self.race()
        wait_until(self.over, what="the last jobs to end")
        with self.database() as database:
            history = History(database)
            billed = database.execute("SELECT run, max(cards) FROM ledger WHERE cards > 0 GROUP BY run").fetchall()
        print(dict(history.seen), flush=True)
        self.assertEqual(history.wrong, [])
        self.assertEqual(history.seen["edits"], ROUNDS)
        # The race was one: edits hit users who held more, and starts used limits up.
        for what in ("starts", "starts up to a limit", "edits that left one over"):
            self.assertGreater(history.seen[what], ROUNDS // 20, what)
        # The cards that the history counted are those that were metered.
        self.assertGreater(len(billed), 0)
        self.assertEqual([history.runs[run][1] for run, _ in billed], [cards for _, cards in billed])
        self.d.kill(signal.SIGTERM)
        fsck = subprocess.run([BIN / "tpd", "fsck", "--data", self.d.data], capture_output=True, check=False)
        self.assertEqual(fsck.returncode, 0, fsck.stdout)


if __name__ == "__main__":
    main()
