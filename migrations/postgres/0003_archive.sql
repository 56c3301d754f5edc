-- Past states of resources whose history is kept longer than the log's. They come here when the log forgets them. A state was there from
-- `revision` until `until`, the revision that superseded it; of a tombstone both are the same.
CREATE TABLE archive (
    revision  BIGINT  PRIMARY KEY,
    resource  TEXT    COLLATE "C" NOT NULL,
    namespace TEXT    COLLATE "C" NOT NULL,
    name      TEXT    COLLATE "C" NOT NULL,
    previous  BIGINT  NOT NULL,
    deleted   BOOLEAN NOT NULL,
    until     BIGINT  NOT NULL,
    bytes     BIGINT  NOT NULL,
    value     BYTEA   NOT NULL
);

-- The states of an object, the last of them first.
CREATE INDEX archive_key ON archive (resource, namespace, name, revision DESC);

-- What is forgotten next, and how much there is.
CREATE INDEX archive_until ON archive (resource, until, bytes);

-- From which revision on the archive has all states of a resource.
CREATE TABLE archived (
    resource TEXT   COLLATE "C" PRIMARY KEY,
    since    BIGINT NOT NULL
);

-- Where the revision stood at a time, however many marks there are.
CREATE INDEX mark_at ON mark (at, revision);

-- In the order in which states were superseded: copies read it so, and what was superseded first is forgotten first.
CREATE INDEX archive_order ON archive (until, revision);

-- Revisions that are nobody's here: behind `after` and before `until`. The store was restored from what it was at `after`, and went on at
-- `until`. Others may have seen them before that, as states that are lost.
CREATE TABLE lost (
    after BIGINT PRIMARY KEY,
    until BIGINT NOT NULL
);
