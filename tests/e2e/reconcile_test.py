"""Orphans on the local backend: a job that outlived what tpd knows of it."""

import os
import sqlite3
from contextlib import closing

from harness import Deployment, DeploymentTest, main, process_start_ticks, wait_until


class Orphans(DeploymentTest):
    def running(self, deployment):
        """A run whose only process sleeps, and that process: pid and start."""
        run = deployment.submit("sleep", "600")
        deployment.tp("wait", run, "--until", "RUNNING")
        started = deployment.record(run, "0-0.started")
        return run, (int(started["pid"]), int(started["pid_start_ticks"]))

    @staticmethod
    def alive(process):
        return process_start_ticks(process[0]) == process[1]

    def end_by_hand(self, process):
        if self.alive(process):
            os.kill(process[0], 9)

    def forget(self, deployment, run):
        """The run is over, as far as the database knows; its processes are not."""
        number = int(run.rpartition("-")[2])
        over = deployment.submit("true")
        deployment.wait(over)
        deployment.kill()
        with closing(sqlite3.connect(deployment.data / "tpd.db")) as database, database:
            for table, key in (("step", "run"), ("run", "n")):
                columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")
                           if row[1] not in (key, "slug", "created_at_us")]
                other = int(over.rpartition("-")[2])
                for column in columns:
                    database.execute(f"UPDATE {table} SET {column} = (SELECT {column} FROM {table} WHERE {key} = ?) "
                                     f"WHERE {key} = ?", (other, number))
        deployment.start()

    def test_an_orphan_is_listed_then_ended_and_others_stay(self):
        orphan_run, orphan = self.running(self.d)
        self.addCleanup(self.end_by_hand, orphan)
        self.forget(self.d, orphan_run)
        live_run, live = self.running(self.d)
        other = Deployment().start()
        self.addCleanup(other.close)
        _, foreign = self.running(other)
        self.addCleanup(self.end_by_hand, foreign)
        listed = self.d.json("admin", "reconcile", "--dry-run")
        self.assertTrue(listed["dry_run"])
        [finding] = listed["findings"]
        self.assertEqual(finding["kind"], "ORPHAN", finding)
        self.assertRegex(finding["key"], rf"-e1-{orphan_run.rpartition('-')[2]}-s0-a1$")
        self.assertTrue(self.alive(orphan), "a dry run ends nothing")
        done = self.d.json("admin", "reconcile")
        self.assertEqual(done["note"], "1 orphan is being ended")
        wait_until(lambda: not self.alive(orphan), what="the orphan's end")
        wait_until(lambda: not self.d.json("admin", "reconcile", "--dry-run")["findings"], what="no finding")
        self.assertTrue(self.alive(live) and self.alive(foreign))
        self.d.tp("stop", live_run)
        self.d.wait(live_run)


if __name__ == "__main__":
    main()
