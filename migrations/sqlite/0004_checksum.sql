-- Checksums of states whose values are not sealed: of key, revision and JSON. States that an older portico has written have none.
ALTER TABLE log ADD COLUMN checksum INTEGER;
ALTER TABLE archive ADD COLUMN checksum INTEGER;
