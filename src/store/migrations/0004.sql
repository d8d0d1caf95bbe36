-- Where in the event log an audited act belongs: the newest event's revision when it was done. 0: before
-- events, or done before this was kept.

ALTER TABLE audit ADD COLUMN revision INTEGER NOT NULL DEFAULT 0 CHECK (revision >= 0);
