-- The states of objects that are being deleted ('deletionTimestamp":' stands in them), or sealed, so that only whoever opens them
-- knows: what controllers look for when they start, without reading all that is stored.
CREATE INDEX log_deleting ON log (resource, namespace, name)
    WHERE position('\x64656c6574696f6e54696d657374616d70223a'::bytea IN value) > 0 OR get_byte(value, 0) = 2;
