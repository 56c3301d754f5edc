-- Checksums of states whose values are not sealed: of key, revision and JSON. States that an older portico has written have none.
ALTER TABLE log ADD COLUMN IF NOT EXISTS checksum BIGINT;
ALTER TABLE archive ADD COLUMN IF NOT EXISTS checksum BIGINT;

-- Commits after the last mark are in its second: the earlier release marked its last commits up to 30 s later.
INSERT INTO mark (revision, at) SELECT revision, floor(extract(epoch FROM clock_timestamp()))::bigint FROM meta WHERE id = 1
  ON CONFLICT DO NOTHING;
