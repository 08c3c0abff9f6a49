-- Tables of the side store that came or went after its first version: files of earlier versions are mended when they are opened.

-- Whole answers and structures are no longer kept: what was made of a text must not outlive it.
DROP TABLE IF EXISTS answer_documents;
DROP TABLE IF EXISTS answers;
DROP TABLE IF EXISTS structures;

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
