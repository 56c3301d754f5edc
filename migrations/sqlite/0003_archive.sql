-- Past states of resources whose history is kept longer than the log's. They come here when the log forgets them. A state was there from
-- `revision` until `until`, the revision that superseded it; of a tombstone both are the same.
CREATE TABLE archive (
    revision  INTEGER PRIMARY KEY,
    resource  INTEGER NOT NULL,
    namespace TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    previous  INTEGER NOT NULL,
    deleted   INTEGER NOT NULL,
    until     INTEGER NOT NULL,
    bytes     INTEGER NOT NULL,
    value     BLOB    NOT NULL
) STRICT;

-- The states of an object, and which of them was there at a revision.
CREATE INDEX archive_key ON archive (resource, namespace, name, revision, until, deleted);

-- What is forgotten next, and how much there is.
CREATE INDEX archive_until ON archive (resource, until, bytes);

-- From which revision on the archive has all states of a resource.
CREATE TABLE archived (
    resource INTEGER PRIMARY KEY,
    since    INTEGER NOT NULL
) STRICT;

-- Where the revision stood at a time, however many marks there are.
CREATE INDEX mark_at ON mark (at, revision);

-- In the order in which states were superseded: copies read it so, and what was superseded first is forgotten first.
CREATE INDEX archive_order ON archive (until);

-- Revisions that are nobody's here: behind `after` and before `until`. The store was restored from what it was at `after`, and went on at
-- `until`. Others may have seen them before that, as states that are lost.
CREATE TABLE lost (
    after INTEGER PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT;
