-- Tables of the side store that came after its first version: added to the files of earlier versions when they are opened.

CREATE TABLE IF NOT EXISTS structures (
    key TEXT PRIMARY KEY, document TEXT NOT NULL, built TEXT NOT NULL, used REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS structures_by_document ON structures (document);
CREATE INDEX IF NOT EXISTS structures_by_use ON structures (used);

-- Of memory: how well the answer was supported, what else there was about it, its evidence in order, with shares (JSON), and by what
-- an entry is found.
CREATE TABLE IF NOT EXISTS memory_basis (
    source TEXT NOT NULL, title TEXT NOT NULL, support TEXT NOT NULL, surroundings TEXT NOT NULL, ranked TEXT NOT NULL,
    PRIMARY KEY (source, title)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS memory_keys (
    source TEXT NOT NULL, title TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (source, title, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS memory_by_key ON memory_keys (key);
CREATE INDEX IF NOT EXISTS memory_by_title ON memory (title)
