-- Who is told of what becomes of a run (`notify` is JSON of store/codec.cc), and each change of a run's word of
-- which somebody can be told, under the revision of the event that made it.

ALTER TABLE run ADD COLUMN notify TEXT NOT NULL DEFAULT '{"v":1,"value":[]}';

CREATE TABLE word_change (
  revision INTEGER PRIMARY KEY CHECK (revision >= 1),
  at_us INTEGER NOT NULL,
  run INTEGER NOT NULL REFERENCES run (n),
  step TEXT NOT NULL, -- the name of the one that the word speaks of
  from_word TEXT NOT NULL CHECK (from_word IN ('QUEUED', 'SUBMITTED', 'PENDING', 'RUNNING', 'PAUSED', 'SUCCEEDED',
                                               'FAILED', 'STOPPED', 'PARTIAL')),
  to_word TEXT NOT NULL CHECK (to_word IN ('PAUSED', 'SUCCEEDED', 'FAILED', 'STOPPED', 'PARTIAL')),
  retry_count INTEGER NOT NULL CHECK (retry_count >= 0),
  reason TEXT NOT NULL
) STRICT;
