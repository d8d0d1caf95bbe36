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
