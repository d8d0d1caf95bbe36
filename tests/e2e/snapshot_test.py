"""Working directories: what is sent, what a job gets, and what survives tpd's end."""

import os
import signal
import threading

from harness import DeploymentTest, main, wait_until


class Snapshots(DeploymentTest):
    def folder(self):
        return self.d.storage() / ".snapshots"

    def blobs(self):
        return {path.name for path in (self.folder() / "blobs").rglob("*") if path.is_file()}

    def output(self, run):
        self.assertEqual(self.d.wait(run), 0)
        return self.d.tp("logs", run).stdout

    def test_the_job_gets_the_tree_as_it_was(self):
        work = self.d.work
        (work / "bin").mkdir()
        (work / "bin" / "tool").write_text("#!/bin/sh\necho tool\n")
        (work / "bin" / "tool").chmod(0o700)
        (work / "link").symlink_to("bin/tool")
        (work / "empty").mkdir()
        (work / "Name").write_text("upper")
        (work / "name").write_text("lower")
        odd = os.fsencode(work) + b"/\xff\n"
        with open(odd, "wb") as file:
            file.write(b"odd")
        (work / ".tpignore").write_text("*.ckpt\n!keep.ckpt\ndata/\n")
        (work / "a.ckpt").write_text("x")
        (work / "keep.ckpt").write_text("x")
        (work / "data").mkdir()
        (work / "data" / "big").write_text("x")
        run = self.d.submit("sh", "-c", "./link; LC_ALL=C ls -A; cat Name name; stat -c %a bin/tool Name")
        self.assertEqual(self.output(run),
                         b"tool\n.tpignore\nName\nbin\nempty\nkeep.ckpt\nlink\nname\n\xff\n\nupperlower755\n644\n")

    def test_content_is_sent_once_and_jobs_cannot_change_it(self):
        for i in range(200):
            (self.d.work / f"file{i}").write_text(f"content {i}")
        first = self.d.submit("sh", "-c", "echo changed >file0; rm file1; cat file0")
        self.assertEqual(self.output(first), b"changed\n")
        sent = self.blobs()
        self.assertEqual(len(sent), 200)
        second = self.d.submit("cat", "file0", "file1")
        self.assertEqual(self.output(second), b"content 0content 1")
        self.assertEqual(self.blobs(), sent)
        (self.d.work / "file7").write_text("changed")
        self.output(self.d.submit("true"))
        self.assertEqual(len(self.blobs() - sent), 1)
        self.assertEqual(len(list((self.folder() / "manifests").iterdir())), 2)

    def test_an_upload_survives_tpd(self):
        with open(self.d.work / "data", "wb") as file:
            for block in range(300):
                file.write(bytes([block % 256]) * (1 << 20))
        result = {}

        def submit():
            result["run"] = self.d.submit("wc", "-c", "data")

        thread = threading.Thread(target=submit)
        thread.start()
        tmp = self.folder() / "tmp"

        def under_way():
            return any(path.stat().st_size > (8 << 20) for path in tmp.iterdir()) or not thread.is_alive()

        wait_until(under_way, what="the upload to begin")
        self.d.kill(signal.SIGKILL)
        self.d.start()
        thread.join(timeout=100)
        self.assertEqual(self.output(result["run"]), b"314572800 data\n")
        self.assertEqual(list(tmp.iterdir()), [])

    def test_a_snapshot_that_is_gone_is_said_so(self):
        run = self.d.submit("false")
        self.d.wait(run)
        self.d.kill(signal.SIGTERM)
        for manifest in (self.folder() / "manifests").iterdir():
            manifest.unlink()
        self.d.start()
        again = self.d.submit("true")
        self.assertEqual(self.d.wait(again), 0, "what is gone is sent again")


if __name__ == "__main__":
    main()
