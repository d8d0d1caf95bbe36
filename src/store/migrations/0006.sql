-- Attempts that were billed without their end records, until these appear (core::Correction).

CREATE TABLE correction (
  key TEXT PRIMARY KEY, -- of the attempt
  run INTEGER NOT NULL,
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  owner TEXT NOT NULL,
  project TEXT NOT NULL,
  backend TEXT NOT NULL,
  target TEXT NOT NULL, -- JSON
  placement TEXT NOT NULL, -- JSON
  ranks TEXT NOT NULL, -- JSON
  meter TEXT NOT NULL, -- JSON
  created_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
