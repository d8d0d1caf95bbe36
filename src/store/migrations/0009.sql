-- An attempt's sight tells which of its cards broke under it, and since when its end waits for a look at them.

UPDATE attempt SET sight = json_set(sight, '$.value.card_faults', json('[]'), '$.value.look_asked', NULL);

-- Who wants it is told of a run whose cards compute nothing: its word stays RUNNING.
CREATE TABLE new_word_change (
  revision INTEGER PRIMARY KEY CHECK (revision >= 1),
  at_us INTEGER NOT NULL,
  run INTEGER NOT NULL REFERENCES run (n),
  step TEXT NOT NULL, -- the name of the one that the word speaks of
  from_word TEXT NOT NULL CHECK (from_word IN ('QUEUED', 'SUBMITTED', 'PENDING', 'RUNNING', 'PAUSED', 'SUCCEEDED',
                                               'FAILED', 'STOPPED', 'PARTIAL')),
  to_word TEXT NOT NULL CHECK (to_word IN ('RUNNING', 'PAUSED', 'SUCCEEDED', 'FAILED', 'STOPPED', 'PARTIAL')),
  retry_count INTEGER NOT NULL CHECK (retry_count >= 0),
  reason TEXT NOT NULL
) STRICT;
INSERT INTO new_word_change SELECT * FROM word_change;
DROP TABLE word_change;
ALTER TABLE new_word_change RENAME TO word_change;
