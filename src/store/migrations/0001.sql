-- Times are microseconds since 1970 in UTC unless the name says otherwise; booleans are 0 and 1; the
-- words of enumerations are those of store/words.cc; JSON is that of store/codec.cc.

CREATE TABLE meta (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  epoch INTEGER NOT NULL CHECK (epoch >= 1),
  revision INTEGER NOT NULL CHECK (revision >= 0),
  next_run INTEGER NOT NULL CHECK (next_run >= 1),
  next_outbox INTEGER NOT NULL CHECK (next_outbox >= 1),
  ledger_seq INTEGER NOT NULL CHECK (ledger_seq >= 0),
  ledger_hash TEXT NOT NULL
) STRICT;

INSERT INTO meta VALUES (1, 1, 0, 1, 1, 0, '');

CREATE TABLE run (
  n INTEGER PRIMARY KEY CHECK (n >= 1),
  slug TEXT NOT NULL,
  owner TEXT NOT NULL,
  project TEXT NOT NULL,
  snapshot_id TEXT NOT NULL,
  priority INTEGER NOT NULL,
  created_at_us INTEGER NOT NULL,
  snapshot_available INTEGER NOT NULL CHECK (snapshot_available IN (0, 1)),
  -- Derived from the steps at every commit that changes one of them.
  word TEXT NOT NULL CHECK (word IN ('QUEUED', 'SUBMITTED', 'PENDING', 'RUNNING', 'PAUSED', 'SUCCEEDED', 'FAILED',
                                     'STOPPED', 'PARTIAL')),
  word_changed_at_us INTEGER NOT NULL,
  retry_count INTEGER NOT NULL
) STRICT;

CREATE INDEX run_by_owner ON run (owner, n);
CREATE INDEX run_by_project ON run (project, n);
CREATE INDEX run_by_word ON run (word, n);
CREATE INDEX run_by_change ON run (word_changed_at_us, owner);
-- Queries repeat this condition word for word, or the index is not used for them.
CREATE INDEX run_unfinished ON run (owner, n) WHERE word IN ('QUEUED', 'SUBMITTED', 'PENDING', 'RUNNING', 'PAUSED');

CREATE TABLE run_label (
  run INTEGER NOT NULL REFERENCES run (n) ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_label_by_value ON run_label (key, value, run);

CREATE TABLE step (
  run INTEGER NOT NULL REFERENCES run (n) ON DELETE CASCADE,
  step INTEGER NOT NULL CHECK (step >= 0),
  state TEXT NOT NULL CHECK (state IN ('QUEUED', 'SUBMITTED', 'PENDING', 'RUNNING', 'PAUSED', 'SUCCEEDED', 'FAILED',
                                       'STOPPED')),
  created_at_us INTEGER NOT NULL,
  entered_at_us INTEGER NOT NULL,
  stop_requested INTEGER NOT NULL CHECK (stop_requested IN (0, 1)),
  pause_owner INTEGER NOT NULL CHECK (pause_owner IN (0, 1)),
  pause_admin INTEGER NOT NULL CHECK (pause_admin IN (0, 1)),
  pause_window INTEGER NOT NULL CHECK (pause_window IN (0, 1)),
  hold_owner INTEGER NOT NULL CHECK (hold_owner IN (0, 1)),
  hold_admin INTEGER NOT NULL CHECK (hold_admin IN (0, 1)),
  hold_shape TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  retry_count INTEGER NOT NULL,
  user_retries_used INTEGER NOT NULL,
  infrastructure_retries_used INTEGER NOT NULL,
  relaunches INTEGER NOT NULL,
  cooldown_until_us INTEGER,
  backoff_until_us INTEGER,
  backoff_reason TEXT NOT NULL,
  avoid_node TEXT NOT NULL,
  ran_us INTEGER NOT NULL,
  ever_ran INTEGER NOT NULL CHECK (ever_ran IN (0, 1)),
  failure_kind TEXT CHECK (failure_kind IN ('user_exit', 'user_oom', 'time_limit', 'engine_rejected', 'image',
                                            'start_timeout', 'node_lost', 'preempted', 'evicted', 'gpu_lost', 'storage',
                                            'dependency', 'lost')),
  failure_sentence TEXT NOT NULL,
  exit TEXT NOT NULL,
  spec TEXT NOT NULL, -- JSON
  past TEXT NOT NULL, -- JSON
  PRIMARY KEY (run, step)
) STRICT;

CREATE INDEX step_live ON step (state, run, step) WHERE state IN ('SUBMITTED', 'PENDING', 'RUNNING');

-- The live attempt of a step; it is gone when the step leaves SUBMITTED, PENDING and RUNNING.
CREATE TABLE attempt (
  run INTEGER NOT NULL,
  step INTEGER NOT NULL,
  number INTEGER NOT NULL,
  key TEXT NOT NULL UNIQUE,
  nonce TEXT NOT NULL,
  created_at_us INTEGER NOT NULL,
  handover TEXT NOT NULL CHECK (handover IN ('sending', 'indeterminate', 'accepted')),
  claim TEXT NOT NULL CHECK (claim IN ('none', 'this_launch', 'other_launch', 'fenced')),
  granted_at_us INTEGER,
  engine_end TEXT NOT NULL CHECK (engine_end IN ('none', 'exited_zero', 'failed', 'out_of_memory', 'evicted',
                                                 'preempted', 'node_lost', 'time_limit', 'image')),
  freed INTEGER NOT NULL CHECK (freed IN (0, 1)),
  shape TEXT NOT NULL, -- JSON
  placement TEXT NOT NULL, -- JSON
  ranks TEXT NOT NULL, -- JSON
  meter TEXT, -- JSON
  ending TEXT, -- JSON
  sight TEXT NOT NULL, -- JSON
  PRIMARY KEY (run, step),
  FOREIGN KEY (run, step) REFERENCES step (run, step) ON DELETE CASCADE
) STRICT;

CREATE TABLE event (
  revision INTEGER PRIMARY KEY CHECK (revision >= 1),
  at_us INTEGER NOT NULL,
  run INTEGER NOT NULL,
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  event TEXT NOT NULL,
  from_state TEXT NOT NULL CHECK (from_state IN ('QUEUED', 'SUBMITTED', 'PENDING', 'RUNNING', 'PAUSED', 'SUCCEEDED',
                                                 'FAILED', 'STOPPED')),
  to_state TEXT NOT NULL CHECK (to_state IN ('QUEUED', 'SUBMITTED', 'PENDING', 'RUNNING', 'PAUSED', 'SUCCEEDED',
                                             'FAILED', 'STOPPED')),
  note TEXT NOT NULL
) STRICT;

CREATE INDEX event_by_run ON event (run, revision);

-- Effects that are owed to a backend.
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY CHECK (id >= 1),
  run INTEGER NOT NULL,
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('launch', 'fence', 'signal', 'remove')),
  level TEXT NOT NULL CHECK (level IN ('warn', 'term', 'kill')),
  backend TEXT NOT NULL,
  target TEXT NOT NULL, -- JSON
  created_at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE request (
  principal TEXT NOT NULL,
  request_id TEXT NOT NULL,
  method TEXT NOT NULL,
  body_sha256 TEXT NOT NULL,
  run INTEGER NOT NULL,
  note TEXT NOT NULL,
  PRIMARY KEY (principal, request_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX request_by_run ON request (run);

CREATE TABLE snapshot (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  files INTEGER NOT NULL CHECK (files >= 0),
  created_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE token (
  id TEXT PRIMARY KEY,
  secret_sha256 TEXT NOT NULL,
  user TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('viewer', 'user', 'operator', 'admin')),
  created_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at_us INTEGER NOT NULL,
  principal TEXT NOT NULL,
  method TEXT NOT NULL,
  run INTEGER NOT NULL, -- 0: not about a run
  detail TEXT NOT NULL
) STRICT;

CREATE TABLE ledger (
  seq INTEGER PRIMARY KEY CHECK (seq >= 1),
  run INTEGER NOT NULL,
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  pool INTEGER NOT NULL,
  series TEXT NOT NULL,
  profile TEXT NOT NULL,
  owner TEXT NOT NULL,
  project TEXT NOT NULL,
  month TEXT NOT NULL,
  cards INTEGER NOT NULL CHECK (cards >= 0),
  start_unix_ms INTEGER NOT NULL,
  end_unix_ms INTEGER NOT NULL,
  gpu_ms INTEGER NOT NULL,
  flagged INTEGER NOT NULL CHECK (flagged IN (0, 1)),
  delta INTEGER NOT NULL CHECK (delta IN (0, 1)),
  evidence TEXT NOT NULL,
  previous_hash TEXT NOT NULL,
  hash TEXT NOT NULL,
  CHECK (gpu_ms = (end_unix_ms - start_unix_ms) * cards),
  CHECK (gpu_ms >= 0 OR delta = 1)
) STRICT;

-- Nothing is billed twice; a flagged end is corrected once.
CREATE UNIQUE INDEX ledger_billed ON ledger (run, step, attempt, pool, month, delta);
CREATE INDEX ledger_by_owner ON ledger (owner, seq);

CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only');
END;

CREATE TRIGGER ledger_is_never_deleted BEFORE DELETE ON ledger
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only');
END;
