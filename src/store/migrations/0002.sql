-- `tp rm` leaves a tombstone; ended attempts tell on which backend they were.

ALTER TABLE run ADD COLUMN removed_at_us INTEGER;

UPDATE step
SET past = json_set(past, '$.value', json((SELECT json_group_array(json(json_set(value, '$.backend', '')))
                                           FROM json_each(step.past, '$.value'))))
WHERE json_array_length(past, '$.value') > 0;
