-- Runs that come after other runs, and arrays: `after_runs` is JSON of store/codec.cc, `array_limit` how many of
-- an array's tasks may be live at once (0: all).

ALTER TABLE run ADD COLUMN after_runs TEXT NOT NULL DEFAULT '{"v":1,"value":[]}';
ALTER TABLE run ADD COLUMN array_limit INTEGER NOT NULL DEFAULT 0 CHECK (array_limit >= 0);

UPDATE step SET spec = json_set(spec, '$.value.array_index', NULL);
