-- What an attempt's ranks ask of their nodes, and how its executor is configured, are frozen with its shape;
-- a target tells the machines of its ranks.

UPDATE attempt
SET shape = json_set(
  shape,
  '$.value.executor_config', '{}',
  '$.value.pools', json((
    SELECT json_group_array(json(json_set(
      value, '$.demand',
      json('{"limits":{"cpus":null,"memory_bytes":null,"shm_bytes":null,"memlock_bytes":null},'
           || '"virtual_cards":false,"constraint":"","node_selector":[]}'))))
    FROM json_each(attempt.shape, '$.value.pools'))));

UPDATE outbox SET target = json_set(target, '$.value.hosts', json('[]'));
UPDATE correction SET target = json_set(target, '$.value.hosts', json('[]'));

-- Nodes (card -1) and cards that take no new jobs, and the attempts that were lost on a node.
CREATE TABLE node_mark (
  node TEXT NOT NULL,
  card INTEGER NOT NULL CHECK (card >= -1),
  kind TEXT NOT NULL CHECK (kind IN ('drained', 'dead')),
  reason TEXT NOT NULL,
  set_by TEXT NOT NULL,
  set_at_us INTEGER NOT NULL,
  PRIMARY KEY (node, card)
) STRICT, WITHOUT ROWID;

CREATE TABLE strike (
  node TEXT NOT NULL,
  at_us INTEGER NOT NULL,
  run INTEGER NOT NULL,
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  owner TEXT NOT NULL,
  failure_kind TEXT NOT NULL,
  PRIMARY KEY (node, at_us, run, step, attempt)
) STRICT, WITHOUT ROWID;
