-- The states of objects that are being deleted ('deletionTimestamp":' stands in them), or sealed, so that only whoever opens them
-- knows: what controllers look for when they start, without reading all that is stored.
CREATE INDEX log_deleting ON log (resource, namespace, name)
    WHERE instr(value, x'64656c6574696f6e54696d657374616d70223a') > 0 OR substr(value, 1, 1) = x'02';
