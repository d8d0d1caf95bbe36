-- What admins set for users and windows, and what storage they were found to use.

CREATE TABLE quota_rule (
  id INTEGER PRIMARY KEY CHECK (id >= 1),
  user TEXT NOT NULL,
  from_us INTEGER,
  until_us INTEGER,
  limits TEXT NOT NULL, -- JSON
  set_at_us INTEGER NOT NULL,
  set_by TEXT NOT NULL,
  CHECK (from_us < until_us)
) STRICT;

CREATE TABLE storage_use (
  owner TEXT PRIMARY KEY, -- empty: everybody whom the last scan did not find
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  scanned_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE window_hold (
  series TEXT PRIMARY KEY,
  until_us INTEGER NOT NULL,
  set_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- For what users have used of the present month: the index alone answers it.
CREATE INDEX ledger_by_month ON ledger (month, owner, gpu_ms);
