-- The store: one committed log, the index that finds states in it, and what controllers of every kind ask for.
--
-- Texts that are compared are of collation "C", and a namespace is kept with a closing '/' ('' for cluster-scoped objects), so
-- that the order of (namespace, name) is upstream's order of storage keys: 'kube-system/' comes before 'kube/'. A resource is
-- its plural, a dot and its group ('configmaps', 'leases.coordination.k8s.io').

-- One row: who this store is and how far it has come. Whoever writes the log moves the revision in the same transaction: the
-- lock of this row is what puts all writers in one order. `commit_id` is that of whoever moved the revision last, drawn at
-- random: by it a process knows that the database still has what it saw.
CREATE TABLE meta (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    store_id  TEXT    NOT NULL,
    epoch     BIGINT  NOT NULL,
    revision  BIGINT  NOT NULL,
    compacted BIGINT  NOT NULL,
    commit_id BIGINT  NOT NULL
);

-- Every committed state. `previous` is the revision that this one supersedes, 0 for a creation. A tombstone (`deleted`) holds
-- the last state. `commit_id` is the same in all rows of one commit, and drawn at random: whoever lost the answer finds out
-- by it. `value` is a format byte and canonical JSON without resourceVersion.
CREATE TABLE log (
    revision  BIGINT  PRIMARY KEY,
    resource  TEXT    COLLATE "C" NOT NULL,
    namespace TEXT    COLLATE "C" NOT NULL,
    name      TEXT    COLLATE "C" NOT NULL,
    uid       TEXT    NOT NULL,
    previous  BIGINT  NOT NULL,
    deleted   BOOLEAN NOT NULL,
    commit_id BIGINT  NOT NULL,
    value     BYTEA   NOT NULL
);

-- The states of an object, the last of them first.
CREATE INDEX log_key ON log (resource, namespace, name, revision DESC);

-- dependents(owner uid): the owner references of existing objects, for garbage collection.
CREATE TABLE owner (
    owner_uid TEXT COLLATE "C" NOT NULL,
    resource  TEXT COLLATE "C" NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (owner_uid, resource, namespace, name)
);

-- When the revision stood where (Unix seconds): compaction by age.
CREATE TABLE mark (
    revision BIGINT PRIMARY KEY,
    at       BIGINT NOT NULL
);

-- One row: up to which revision superseded states are gone. Behind `meta.compacted` while somebody compacts.
CREATE TABLE swept (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    revision BIGINT  NOT NULL
);
