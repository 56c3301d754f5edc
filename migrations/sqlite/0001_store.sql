-- The store: one committed log, the index that finds states in it, and what controllers of every kind ask for.
--
-- A namespace is kept with a closing '/' ('' for cluster-scoped objects), so that the order of (namespace, name) is
-- upstream's order of storage keys: 'kube-system/' comes before 'kube/'.

-- One row: who this store is and how far it has come. The revision moves in the transaction that writes the log.
CREATE TABLE meta (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    store_id  TEXT    NOT NULL,
    epoch     INTEGER NOT NULL,
    revision  INTEGER NOT NULL,
    compacted INTEGER NOT NULL
) STRICT;

CREATE TABLE resource (
    id        INTEGER PRIMARY KEY,
    api_group TEXT NOT NULL,
    resource  TEXT NOT NULL,
    UNIQUE (api_group, resource)
) STRICT;

-- Every committed state. `previous` is the revision that this one supersedes, 0 for a creation. A tombstone
-- (`deleted`) holds the last state. `value` is a format byte and canonical JSON without resourceVersion.
CREATE TABLE log (
    revision  INTEGER PRIMARY KEY,
    resource  INTEGER NOT NULL,
    namespace TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    uid       TEXT    NOT NULL,
    previous  INTEGER NOT NULL,
    deleted   INTEGER NOT NULL,
    value     BLOB    NOT NULL
) STRICT;

-- The states of an object, the last of them its current one. Answers without the log's rows: is it there and at which
-- revision, what was there at a revision, and resources_in(namespace): which resources a namespace's deletion has to empty.
CREATE INDEX log_key ON log (resource, namespace, name, revision, deleted);

-- dependents(owner uid): the owner references of existing objects, for garbage collection.
CREATE TABLE owner (
    owner_uid TEXT    NOT NULL,
    resource  INTEGER NOT NULL,
    namespace TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    PRIMARY KEY (owner_uid, resource, namespace, name)
) STRICT, WITHOUT ROWID;

-- When the revision stood where (Unix seconds): compaction by age.
CREATE TABLE mark (
    revision INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL
) STRICT;
