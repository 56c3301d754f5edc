-- Checksums of states whose values are not sealed: of key, revision and JSON. States that an older portico has written have none.
ALTER TABLE log ADD COLUMN IF NOT EXISTS checksum BIGINT;
ALTER TABLE archive ADD COLUMN IF NOT EXISTS checksum BIGINT;
