-- Tables of the side store that came after its first version: added to the files of earlier versions when they are opened.

CREATE TABLE IF NOT EXISTS structures (
    key TEXT PRIMARY KEY, document TEXT NOT NULL, built TEXT NOT NULL, used REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS structures_by_document ON structures (document);
CREATE INDEX IF NOT EXISTS structures_by_use ON structures (used)
